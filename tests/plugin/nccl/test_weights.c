/* SPDX-License-Identifier: BSD-3-Clause */
/* What each member of a fused device sends, counted by the NICs themselves, is in the proportion of
 * the weights: within 1 %. */
#include "tests/plugin/nccl/rig.h"
#include "tests/plugin/nccl/sent.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE (1 << 20)
#ifdef __SANITIZE_THREAD__ /* ten times as slow */
#define MESSAGES 8
#else
#define MESSAGES 48
#endif

static const struct setting {
	const char *policy, *weights; /* NULL: not set */
	double part[2];
	const char *warning; /* NULL: none */
	const char *qps;
} settings[] = {
	{ NULL, NULL, { 0.5, 0.5 }, NULL },
	{ NULL, "512,512", { 0.5, 0.5 }, NULL },
	{ NULL, "768,256", { 0.75, 0.25 }, NULL },
	{ NULL, "646,378", { 646.0 / 1024, 378.0 / 1024 }, NULL },
	{ NULL, "1024,0", { 1, 0 }, NULL },
	{ "static", "0,1024", { 0, 1 }, NULL },
	{ NULL, "3,1", { 0.75, 0.25 }, NULL },
	{ "primary", "512,512", { 1, 0 }, NULL },
	{ "topology", "1024,0", { 0.5, 0.5 }, NULL },
	{ NULL, "much,more", { 0.5, 0.5 }, "HA_NCCL_WEIGHTS=much,more" },
	{ NULL, "768,256", { 0.75, 0.25 }, NULL, "3" },
	{ NULL, NULL, { 0.5, 0.5 }, NULL, "100" },
};

static void run_setting(const struct setting *s)
{
	struct rig rig;
	struct rig_pair pair;
	uint64_t before[2], after[2];
	double all, slack, payload = (double)MESSAGES * MESSAGE / rig_sent_unit();
	int dev;

	if (s->policy)
		setenv("HA_NCCL_POLICY", s->policy, 1);
	if (s->weights)
		setenv("HA_NCCL_WEIGHTS", s->weights, 1);
	if (s->qps)
		setenv("NCCL_IB_QPS_PER_CONNECTION", s->qps, 1);
	rig_open(&rig, 1, NULL);
	CHECK(!s->warning || rig_logged(s->warning), "nonsense is taken without a warning");
	CHECK(s->warning || !rig_warnings(), "%s", rig_last_warning());
	OK(rig.plugin.abi->fuse(&rig.plugin, &dev, 2, (int[]) { 0, 1 }));
	rig_pair_open_on(&rig, &pair, dev);
	rig_exchange(&rig, &pair, MESSAGE);
	before[0] = rig_sent_by(rig_device(0));
	before[1] = rig_sent_by(rig_device(1));
	for (int i = 0; i < MESSAGES; i++)
		rig_exchange(&rig, &pair, MESSAGE);
	after[0] = rig_sent_by(rig_device(0)) - before[0];
	after[1] = rig_sent_by(rig_device(1)) - before[1];
	all = (double)(after[0] + after[1]);
	slack = rig_sent_slack(all, payload);
	printf("policy %-8s weights %-9s queue pairs %-3s: %.4f and %.4f of %.0f on the wire\n",
	       s->policy ? s->policy : "-", s->weights ? s->weights : "-", s->qps ? s->qps : "1",
	       (double)after[0] / all, (double)after[1] / all, all);
	for (int i = 0; i < 2; i++)
		CHECK((double)after[i] / all > s->part[i] - slack &&
			      (double)after[i] / all < s->part[i] + slack,
		      "%s sent %.4f of it, not %.4f", rig_device(i), (double)after[i] / all,
		      s->part[i]);
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
}

/* A process each: variables are read once. */
int main(void)
{
	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
		int status;
		pid_t child = fork();

		if (!child) {
			run_setting(&settings[i]);
			fflush(stdout);
			_exit(0);
		}
		CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "setting %u",
		      i);
	}
	return 0;
}
