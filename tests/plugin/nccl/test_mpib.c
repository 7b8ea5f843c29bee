/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPIB: two unequal NICs as one device. A sender and a receiver in processes of their own, in a
 * network namespace with two islands; each counts what its NICs have sent. The rails and their
 * bytes are the ones of the design's testing matrix.
 */
#include "tests/plugin/nccl/hinter.h"
#include "tests/plugin/nccl/rig.h"
#include "tests/plugin/nccl/sent.h"

#include "plugin/nccl/abi/net_v12.h"

#include <sys/wait.h>

#define MESSAGE (1 << 20)
#define SMALL (16 << 10) /* below any gate that is measured: 16 KiB is the least */
#define MESSAGES 32

static const struct setting {
	const char *name, *mode, *prefix, *sout_qp, *sup_qp;
	const char *oob[2]; /* the sender's interface, and the receiver's */
	int rails;
	double sup;    /* SUP's part of the bytes */
	unsigned hint; /* with an agent that says so; 0: no agent */
	const char *gate;
	size_t size; /* 0: MESSAGE */
} settings[] = {
	{ "intra-island, vanilla", "0", "24", NULL, NULL, { "ha_i1", "ha_i1" }, 6, 1 },
	{ "inter-island, vanilla", "0", "24", NULL, NULL, { "ha_i1", "ha_i2" }, 2, 0 },
	{ "inter-island, vanilla, the other way",
	  "0",
	  "24",
	  NULL,
	  NULL,
	  { "ha_i2", "ha_i1" },
	  2,
	  0 },
	{ "a wider island", "0", "16", NULL, NULL, { "ha_i1", "ha_i2" }, 6, 1 },
	{ "intra-island, one and three queue pairs",
	  "0",
	  "24",
	  "1",
	  "3",
	  { "ha_i1", "ha_i1" },
	  4,
	  1 },
	{ "more queue pairs than there can be", "0", "24", "64", "64", { "ha_i1", "ha_i1" }, 8, 1 },
	{ "inter-island, advanced, no agent", "1", "24", NULL, NULL, { "ha_i1", "ha_i2" }, 6, 0 },
	{ "intra-island, advanced, no agent", "1", "24", NULL, NULL, { "ha_i1", "ha_i1" }, 6, 0 },
	{ "inter-island, hint 256, small",
	  "1",
	  "24",
	  NULL,
	  NULL,
	  { "ha_i1", "ha_i2" },
	  6,
	  0.25,
	  256,
	  NULL,
	  SMALL - 512 },
	{ "inter-island, hint 768, small, gate",
	  "1",
	  "24",
	  NULL,
	  NULL,
	  { "ha_i1", "ha_i2" },
	  6,
	  0,
	  768,
	  "1",
	  SMALL - 512 },
	{ "inter-island, hint 768, large, gate",
	  "1",
	  "24",
	  NULL,
	  NULL,
	  { "ha_i1", "ha_i2" },
	  6,
	  0.75,
	  768,
	  "1",
	  MESSAGE },
	{ "intra-island, hint 768, small, gate",
	  "1",
	  "24",
	  NULL,
	  NULL,
	  { "ha_i1", "ha_i1" },
	  6,
	  0.75,
	  768,
	  "1",
	  SMALL - 512 },
};

static void set_variable(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
}

static void open_end(struct rig *rig, const struct setting *s, int end)
{
	const ncclNet_v12_t *table;
	ncclNetProperties_v12_t seen;
	struct ha_plugin_props p;
	int dev;

	set_variable("MPIB_HCA_SOUT", "soft0");
	set_variable("MPIB_HCA_SUP", "soft1:1");
	set_variable("MPIB_MODE", s->mode);
	set_variable("MPIB_ISLAND_PREFIX_LEN", s->prefix);
	set_variable("MPIB_SOUT_QP", s->sout_qp);
	set_variable("MPIB_SUP_QP", s->sup_qp);
	set_variable("MPIB_OOB_IF", s->oob[end]);
	set_variable("HA_NCCL_AGENT_GATE", s->gate);
	rig_expect_calm();
	rig_open(rig, 1, NULL);
	CHECK(rig->plugin.devices == 1, "%d devices are reported, not one", rig->plugin.devices);
	OK(rig->plugin.abi->props(&rig->plugin, 0, &p));
	CHECK(!strcmp(p.name, "soft0+soft1") && p.speed == 200000, "'%s', %d Mb/s", p.name,
	      p.speed);
	table = rig->plugin.table;
	OK(table->getProperties(0, &seen));
	CHECK(seen.vProps.ndevs == 1 && seen.vProps.devs[0] == 0,
	      "its members are devices that NCCL does not know");
	CHECK(rig->plugin.abi->fuse(&rig->plugin, &dev, 2, (int[]) { 0, 1 }) == ncclInvalidUsage,
	      "fused beside MPIB");
}

static void check_rails(const struct setting *s)
{
	char last[32], beyond[32];

	snprintf(last, sizeof(last), "rail %d: soft%d:1", s->rails - 1, s->rails > 2);
	snprintf(beyond, sizeof(beyond), "; rail %d:", s->rails);
	CHECK(rig_logged(last) && !rig_logged(beyond), "%s: not %d rails", s->name, s->rails);
	CHECK(rig_logged("MPIB: MPIB_SOUT_QP=64") == (s->sup_qp && !strcmp(s->sup_qp, "64")),
	      "too many queue pairs");
}

static uint8_t data[MESSAGE];

static size_t size_of(const struct setting *s)
{
	return s->size ? s->size : MESSAGE;
}

static void send_one(struct rig *rig, void *comm, void *mr, size_t size, uint32_t seed)
{
	rig_fill(data, size, seed);
	rig_wait(rig, rig_isend(rig, comm, data, size, 1, mr), NULL);
}

/* The connection is registered; messages go out until one follows the hint. How many there were. */
static uint32_t await_hint(struct rig *rig, void *comm, void *mr, const struct setting *s)
{
	struct rig_deadline deadline = rig_deadline("the hint is followed");
	uint32_t n = 0;

	while (!hinter.registered)
		rig_pause(&deadline);
	hinter_write(s->hint);
	while (!rig_logged("the agent's hint is followed")) {
		send_one(rig, comm, mr, size_of(s), n++);
		rig_pause(&deadline);
	}
	return n;
}

static void run_sender(const struct setting *s, int in)
{
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE];
	struct rig_deadline deadline = rig_deadline("connect");
	struct rig rig;
	void *comm = NULL, *mr;
	double sout, sup, slack;
	uint32_t first = 0;

	if (s->hint) {
		hinter_prepare();
		hinter_make_hints();
		hinter_start();
	}
	open_end(&rig, s, 0);
	CHECK(read(in, handle, sizeof(handle)) == sizeof(handle), "no handle");
	while (!comm) {
		OK(rig.plugin.abi->connect(&rig.plugin, 0, handle, &comm));
		rig_pause(&deadline);
	}
	check_rails(s);
	mr = rig_reg(&rig, comm, data, sizeof(data));
	if (s->hint)
		first = await_hint(&rig, comm, mr, s);
	sout = first ? -(double)rig_sent_by("soft0") : 0;
	sup = first ? -(double)rig_sent_by("soft1") : 0;
	for (uint32_t m = 0; m < MESSAGES; m++)
		send_one(&rig, comm, mr, size_of(s), first + m);
	sout += (double)rig_sent_by("soft0");
	sup += (double)rig_sent_by("soft1");
	printf("%-40s: %d rails, SOUT %.4f SUP %.4f of %.0f bytes\n", s->name, s->rails,
	       sout / (sout + sup), sup / (sout + sup), sout + sup);
	slack = 0.01 + rig_sent_slack(sout + sup, (double)MESSAGES * (double)size_of(s));
	CHECK(sup / (sout + sup) > s->sup - slack && sup / (sout + sup) < s->sup + slack,
	      "SUP sent %.4f of it", sup / (sout + sup));
	send_one(&rig, comm, mr, 1, 0); /* the end */
	OK(rig.plugin.dereg(comm, mr));
	OK(rig.plugin.close_send(comm));
	rig_close(&rig);
	if (s->hint)
		hinter_remove();
}

static void run_receiver(const struct setting *s, int out)
{
	struct rig_deadline deadline = rig_deadline("accept");
	uint8_t handle[NCCL_NET_HANDLE_MAXSIZE] = { 0 };
	struct rig rig;
	void *listen, *comm = NULL, *mr;
	int size = 0;

	open_end(&rig, s, 1);
	OK(rig.plugin.abi->listen(&rig.plugin, 0, handle, &listen));
	CHECK(write(out, handle, sizeof(handle)) == sizeof(handle), "pipe");
	while (!comm) {
		OK(rig.plugin.abi->accept(&rig.plugin, listen, &comm));
		rig_pause(&deadline);
	}
	check_rails(s);
	mr = rig_reg(&rig, comm, data, sizeof(data));
	for (uint32_t m = 0; size != 1; m++) {
		rig_wait(&rig, rig_irecv(&rig, comm, data, sizeof(data), 1, mr), &size);
		CHECK(size == 1 || rig_differ(data, size_of(s), m) == size_of(s),
		      "message %u is wrong", m);
	}
	OK(rig.plugin.dereg(comm, mr));
	OK(rig.plugin.close_recv(comm));
	OK(rig.plugin.close_listen(listen));
	rig_close(&rig);
}

static void run_setting(const struct setting *s)
{
	int pipes[2], status;
	pid_t child[2];

	CHECK(!pipe(pipes), "pipe");
	for (int end = 0; end < 2; end++) {
		child[end] = fork();
		if (child[end])
			continue;
		if (end)
			run_receiver(s, pipes[1]);
		else
			run_sender(s, pipes[0]);
		fflush(stdout);
		_exit(0);
	}
	close(pipes[0]);
	close(pipes[1]);
	for (int end = 0; end < 2; end++)
		CHECK(waitpid(child[end], &status, 0) == child[end] && !status, "%s: the %s",
		      s->name, end ? "receiver" : "sender");
}

/* A NIC that is not there, and only one of the two. */
static void check_wrong_setting(const char *sup, const char *line, int devices)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct rig rig;
		int n = 0;

		set_variable("MPIB_HCA_SOUT", "soft0");
		set_variable("MPIB_HCA_SUP", sup);
		rig_prepare(&rig, 1, NULL);
		rig_load(&rig, rig_plugin_path());
		if (rig_init(&rig) == ncclSuccess)
			OK(rig.plugin.count(&n));
		CHECK(n == devices, "%d devices", n);
		CHECK(rig_logged(line), "no line says '%s'", line);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status, "%s", line);
}

int main(void)
{
	if (!rig_islands()) {
		printf("skipped: no network namespaces or veth interfaces here\n");
		return 77;
	}
	set_variable("NCCL_SOCKET_IFNAME", "lo"); /* MPIB_OOB_IF wins */
	check_wrong_setting("soft7", "there is no active device soft7", 0);
	check_wrong_setting(NULL, "only one of MPIB_HCA_SOUT and MPIB_HCA_SUP is set", 2);
	for (unsigned i = 0; i < sizeof(settings) / sizeof(*settings); i++)
		run_setting(&settings[i]);
	return 0;
}
