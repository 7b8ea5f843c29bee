/* SPDX-License-Identifier: BSD-3-Clause */
/* Which port stands by for which, and what would take both. */
#include "tools/doctor/checks.h"

#define LABEL_MAX (HA_DEVICE_NAME_MAX + 8)

static void find_none(const struct doctor_host *host, const char *label,
		      struct doctor_report *report)
{
	struct doctor_finding *f;

	f = doctor_add(report, DOCTOR_WARNING, "standby", label, "no port can stand by for it");
	doctor_cost(f, "a NIC or cable that fails ends the job; a port that returns is survived");
	if (*host->config->ib_hca)
		doctor_mend(f, "let NCCL_IB_HCA=%.64s name a second NIC", host->config->ib_hca);
	else
		doctor_mend(f, "bring a second port of the same link layer up");
}

/* What the standby shares with its primary, or lacks; false: nothing. */
static bool find_weakness(const struct ha_standby_class *class, const char *label,
			  const char *standby, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (class->apart != HA_STANDBY_OTHER_CARD) {
		bool wire = class->apart == HA_STANDBY_SAME_WIRE;

		f = doctor_add(report, DOCTOR_WARNING, "standby.shared", label,
			       "its standby %s is %s", standby,
			       wire ? "behind the same cable" : "on the same card");
		doctor_cost(f, wire ? "a cable or card that fails takes both"
				    : "a card that fails takes both; a cable does not");
		doctor_mend(f, "let NCCL_IB_HCA name a port of another card");
		return true;
	}
	if (class->other_network) {
		f = doctor_add(report, DOCTOR_WARNING, "standby.network", label,
			       "its standby %s has an address of another kind or RoCE version",
			       standby);
		doctor_cost(f, "it may not reach the peers that the primary reaches");
		doctor_mend(f, "give both an address of the same family; `ha topo -v` shows them");
		return true;
	}
	if (class->slower) {
		f = doctor_add(report, DOCTOR_WARNING, "standby.speed", label,
			       "its standby %s has less than half of its speed", standby);
		doctor_cost(f, "after a failover the job runs at the standby's speed");
		doctor_mend(f,
			    "export HA_NCCL_ENABLE_FAILBACK=1 on every rank: the primary takes its "
			    "traffic back");
		return true;
	}
	if (class->distance == HA_PCI_SYSTEM) {
		f = doctor_add(report, DOCTOR_NOTE, "standby.distance", label,
			       "its standby %s is on another NUMA node, or that is not known",
			       standby);
		doctor_cost(f, "after a failover data crosses the link between the sockets");
		doctor_mend(f, "nothing, where no nearer NIC is there; `ha topo` shows the tree");
		return true;
	}
	return false;
}

/* Where the switches are known, a standby on another one comes first: there is none. */
static bool find_shared_leaf(const struct doctor_host *host, int a, int b,
			     struct doctor_report *report)
{
	const struct ha_topo_device *devices = host->topo->devices;
	char label[LABEL_MAX], other[LABEL_MAX], text[160];
	struct doctor_finding *f;

	if (!ha_standby_shares_leaf(&devices[a], &devices[b]))
		return false;
	f = doctor_add(report, DOCTOR_NOTE, "standby.switch",
		       ha_topo_device_label(&devices[a], label, sizeof(label)),
		       "its standby %s hangs on the same leaf switch %s",
		       ha_topo_device_label(&devices[b], other, sizeof(other)),
		       ha_leaf_text(host->topo, ha_leaf(&devices[a]), text, sizeof(text)));
	doctor_cost(f, "a leaf switch that fails takes both");
	doctor_mend(f, "a NIC of this host on another leaf switch; `ha topo` says who hangs where");
	return true;
}

void doctor_check_standby(const struct doctor_host *host, struct doctor_report *report)
{
	for (int a = 0; a < host->topo->ndevices; a++) {
		char label[LABEL_MAX], other[LABEL_MAX];
		struct ha_standby_class class;
		bool shared;
		int b;

		ha_topo_device_label(&host->topo->devices[a], label, sizeof(label));
		if (!host->standby->count[a]) {
			find_none(host, label, report);
			continue;
		}
		b = host->standby->order[a][0];
		ha_topo_device_label(&host->topo->devices[b], other, sizeof(other));
		if (!ha_standby_classify(host->topo, a, b, &class))
			continue;
		if (host->topo->devices[a].place.is_soft) /* it has no place */
			class.distance = HA_PCI_SAME_SWITCH;
		shared = find_shared_leaf(host, a, b, report);
		if (!find_weakness(&class, label, other, report) && !shared)
			doctor_add(report, DOCTOR_FINE, "standby", label, "%s stands by for it",
				   other);
	}
}
