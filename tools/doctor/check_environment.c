/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment of the job does to hawser. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/config.h"
#include "tools/doctor/checks.h"

#define WINDOW_LONG_MS 4000 /* NCCL's own defaults make 28 s: a job stands for that long */
#define WINDOW_SHORT_MS 100 /* congestion may hold a packet that long */

static void check_net(const struct doctor_host *host, struct doctor_report *report)
{
	const char *net = host->env("NCCL_NET");
	struct doctor_finding *f;

	if (!net) {
		f = doctor_add(report, DOCTOR_WARNING, "environment.net", "NCCL_NET",
			       "it is not set");
		doctor_cost(f, "where hawser cannot be used, NCCL takes another network and says "
			       "nothing");
		doctor_mend(f, "export NCCL_NET=HA");
		return;
	}
	if (!strcasecmp(net, "HA")) {
		doctor_add(report, DOCTOR_FINE, "environment.net", "NCCL_NET", "NCCL_NET=%s", net);
		return;
	}
	f = doctor_add(report, DOCTOR_ERROR, "environment.net", "NCCL_NET",
		       "NCCL_NET=%.64s is another network than hawser's, HA", net);
	doctor_cost(f, "NCCL does not use hawser");
	doctor_mend(f, "export NCCL_NET=HA");
}

static void check_disabled(const struct doctor_host *host, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (host->config->ib_disable) {
		f = doctor_add(report, DOCTOR_ERROR, "environment.disabled", "NCCL_IB_DISABLE",
			       "NCCL_IB_DISABLE=1 hides every RDMA device");
		doctor_cost(f, "hawser has no device, and NCCL uses another network");
		doctor_mend(f, "unset NCCL_IB_DISABLE");
	}
	if (!host->config->enable_backup) {
		f = doctor_add(report, DOCTOR_WARNING, "environment.failover",
			       "HA_NCCL_ENABLE_BACKUP", "failover is switched off");
		doctor_cost(f, "a path that fails ends the job");
		doctor_mend(f, "unset HA_NCCL_ENABLE_BACKUP NCCL_IB_RESILIENCY_PORT_FAILOVER, on "
			       "every rank");
	}
}

/* The log's lines about the environment say what to do themselves. */
static void check_lines(const struct doctor_host *host, struct doctor_report *report)
{
	for (int i = 0; i < host->from_config.n; i++) {
		struct doctor_finding *f = doctor_add(report, DOCTOR_WARNING, "environment", NULL,
						      "%s", host->from_config.text[i]);

		doctor_cost(f, "the variable has not the effect that it was set for");
		doctor_mend(f, "correct or unset it; `ha config` shows what is in force");
	}
}

/* What is set and followed, so that nobody has to guess. */
static void note_followed(const struct doctor_host *host, struct doctor_report *report)
{
	for (int i = 0; i < HA_CONFIG_COUNT; i++) {
		enum ha_config_id id = (enum ha_config_id)i;
		char value[HA_CONFIG_TEXT_MAX];

		if (!ha_config_is_set(host->config, id))
			continue;
		doctor_add(report, DOCTOR_FINE, "environment", ha_config_name(id),
			   "%s=%.200s is followed", ha_config_name(id),
			   ha_config_value(host->config, id, value, sizeof(value)));
	}
}

void doctor_check_environment(const struct doctor_host *host, struct doctor_report *report)
{
	check_net(host, report);
	check_disabled(host, report);
	check_lines(host, report);
	note_followed(host, report);
}

void doctor_check_timeouts(const struct doctor_host *host, struct doctor_report *report)
{
	uint64_t window = ha_config_window_ns(host->config) / HA_NS_PER_MS;
	uint64_t rto = ha_config_rto_ns(host->config) / HA_NS_PER_MS;
	struct doctor_finding *f;

	if (window > WINDOW_LONG_MS) {
		f = doctor_add(report, DOCTOR_WARNING, "timeouts", NULL,
			       "a NIC tries for %.1f s before it reports a path that loses "
			       "everything",
			       (double)window / 1e3);
		doctor_cost(f, "the job stands still for so long when a switch drops silently");
		doctor_mend(f, "unset HA_NCCL_FORCE_IB_TIMEOUT HA_NCCL_QP_TIMEOUT "
			       "HA_NCCL_QP_RETRY_CNT");
		return;
	}
	if (window < WINDOW_SHORT_MS) {
		f = doctor_add(report, DOCTOR_WARNING, "timeouts", NULL,
			       "a NIC gives a path up after %llu ms", (unsigned long long)window);
		doctor_cost(f, "congestion of that length is taken for a failure");
		doctor_mend(f, "unset HA_NCCL_FORCE_IB_TIMEOUT HA_NCCL_QP_TIMEOUT "
			       "HA_NCCL_QP_RETRY_CNT");
		return;
	}
	doctor_add(
		report, DOCTOR_FINE, "timeouts", NULL,
		"silent loss is noticed after %llu ms by the NIC, after %llu ms without progress "
		"by hawser",
		(unsigned long long)window, (unsigned long long)rto);
}
