/* SPDX-License-Identifier: BSD-3-Clause */
/* ha topo: the RDMA devices as hawser sees them, where they sit, and which stands in for which. */
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/options.h"
#include "rdma/topo/device.h"
#include "rdma/topo/gid.h"
#include "rdma/topo/pci.h"
#include "rdma/verbs/dlopen.h"
#include "tools/ha.h"
#include "tools/topo_view.h"

static void switch_print(const struct ha_topo_switch *at)
{
	char text[160];

	if (*at->id)
		printf("    switch   %s, its port %s, by %s\n",
		       ha_leaf_switch_text(at, text, sizeof(text)),
		       *at->port ? at->port : "unknown", *at->source ? at->source : "hand");
	else if (*at->source)
		printf("    switch   not known: %s found none, or several\n", at->source);
	else
		printf("    switch   not in the file of `ha switches` (HA_NCCL_SWITCHES)\n");
}

static void device_print(int index, const struct ha_topo_device *dev)
{
	/* without and with dma-buf, each without and with the peer memory module */
	static const char *const gpu_memory[] = { "not directly", "peer memory module", "dma-buf",
						  "dma-buf, peer memory module" };
	char gid[HA_GID_TEXT_MAX];

	printf("[%d] %s port %d  %s %g Gb/s  MTU %d\n", index, dev->name, dev->port,
	       dev->is_ethernet ? "RoCE" : "InfiniBand", dev->speed_mbps / 1000.0,
	       128 << dev->address.mtu);
	printf("    PCI      %s%s, NUMA node %d\n",
	       *dev->place.pci_path ? dev->place.pci_path : "none (a software NIC)",
	       dev->place.is_virtual ? " (virtual function)" : "", dev->place.numa_node);
	printf("    GUID     %016" PRIx64 " (card %016" PRIx64 ")\n", dev->node_guid, dev->guid);
	if (dev->is_ethernet)
		printf("    GID      %d: %s, RoCE v%d\n", dev->address.gid_index,
		       ha_gid_text(&dev->address.gid, gid), dev->address.roce_version);
	else
		printf("    address  LID %d, GID %d: %s\n", dev->address.lid,
		       dev->address.gid_index, ha_gid_text(&dev->address.gid, gid));
	switch_print(&dev->place.at);
	printf("    limits   %d queue pairs, %d completions per queue, %d shared receive queues, "
	       "%d SGEs per request\n",
	       dev->attr.max_qp, dev->attr.max_cqe, dev->attr.max_srq, dev->attr.max_sge);
	printf("    GPU      %s; relaxed ordering %s; adaptive routing %s%s\n",
	       gpu_memory[2 * !!dev->dma_buf + !!dev->peer_memory],
	       dev->relaxed_ordering ? "on" : "off", dev->adaptive_routing ? "on" : "off",
	       dev->apm_enabled ? "; APM ENABLED, it would fight with failover" : "");
}

static void distances_print(const struct ha_topo *topo)
{
	if (topo->ndevices < 2)
		return;
	printf("\ndistances\n");
	for (int i = 0; i < topo->ndevices; i++)
		for (int j = i + 1; j < topo->ndevices; j++) {
			const struct ha_topo_device *a = &topo->devices[i], *b = &topo->devices[j];

			printf("  %s:%d - %s:%d  %s\n", a->name, a->port, b->name, b->port,
			       ha_pci_distance_name(ha_topo_distance(topo, i, j)));
		}
}

static void filters_print(const struct ha_config *config)
{
	static const enum ha_config_id ids[] = {
		HA_CFG_verbs,
		HA_CFG_ib_hca,
		HA_CFG_ib_gid_index,
		HA_CFG_ib_addr_family,
		HA_CFG_ib_addr_range,
		HA_CFG_ib_roce_version,
		HA_CFG_ib_device_pci_order,
		HA_CFG_switches,
	};
	char value[HA_CONFIG_TEXT_MAX];

	printf("filters:");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		ha_config_value(config, ids[i], value, sizeof(value));
		printf(" %s=%s", ha_config_name(ids[i]), *value ? value : "-");
	}
	printf("\n");
}

static enum topo_failover failover_state(const struct ha_config *config)
{
	if (!ha_config_has_effect(HA_CFG_enable_backup))
		return TOPO_FAILOVER_LATER;
	return config->enable_backup ? TOPO_FAILOVER_ON : TOPO_FAILOVER_OFF;
}

static void text_print(const struct topo_view *view, const struct ha_config *config, bool verbose)
{
	const struct ha_topo *topo = view->topo;

	printf("%d active port%s from %s, %d down\n", topo->ndevices,
	       topo->ndevices == 1 ? "" : "s", topo->verbs->name, topo->down);
	filters_print(config);
	if (topo->nports)
		printf("\n");
	topo_tree_print(view, stdout);
	if (topo->ndevices) {
		printf("\n");
		topo_pairs_print(view, stdout);
		topo_protection_print(view, stdout);
	}
	if (!verbose)
		return;
	printf("\n");
	for (int i = 0; i < topo->ndevices; i++)
		device_print(i, &topo->devices[i]);
	distances_print(topo);
}

struct options {
	bool json, verbose;
};

#define HA_TARGET struct options

static const struct ha_option rows[] = {
	{ "verbose", 'v', NULL, "the limits and abilities of each device and all distances too",
	  HA_FLAG(verbose) },
	{ "json", 'j', NULL, "everything as one JSON object", HA_FLAG(json) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha topo",
	.about = "Draws the RDMA ports of this host, and the standby of each.",
	.options = { rows },
	.notes = "[0], [1], ... are the numbers under which NCCL knows the ports; [-] is not "
		 "reported to it.\n"
		 "A <=> B: each is the other's first standby. `ha config` names the variables that "
		 "choose among devices.",
};

static int show_topology(const struct ha_verbs_ops *verbs, const struct ha_config *config,
			 const struct options *options)
{
	struct ha_topo *topo = calloc(1, sizeof(*topo));
	struct ha_standby *standby = calloc(1, sizeof(*standby));
	struct topo_view view = { .topo = topo,
				  .standby = standby,
				  .failover = failover_state(config) };
	int rc = 1;

	if (!topo || !standby || ha_topo_discover(verbs, config, topo))
		goto out;
	view.utf8 = setlocale(LC_CTYPE, "") && !strcmp(nl_langinfo(CODESET), "UTF-8");
	rc = ha_standby_compute(topo, standby) != 0;
	ha_standby_avoid_leaf(topo, standby);
	if (!rc && options->json)
		rc = topo_json_print(&view, stdout) != 0;
	else if (!rc)
		text_print(&view, config, options->verbose);
	if (!topo->ndevices)
		rc = 1;
	ha_topo_release(topo);
out:
	free(standby);
	free(topo);
	return rc;
}

int ha_cmd_topo(int argc, char **argv)
{
	struct options options = { 0 };
	struct ha_verbs_ops *verbs;
	struct ha_config config;
	int status;

	status = ha_options_parse(&program, argc, argv, &options);
	if (status)
		return status - 1;
	ha_config_load_env(&config);
	if (config.ib_disable)
		fprintf(stderr, "ha topo: NCCL_IB_DISABLE=1 hides every RDMA device; unset it to "
				"see them\n");
	if (ha_verbs_open_library(config.verbs, &verbs))
		return 1;
	status = show_topology(verbs, &config, &options);
	ha_verbs_close_library(verbs);
	return status;
}
