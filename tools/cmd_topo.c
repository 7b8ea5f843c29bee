/* SPDX-License-Identifier: BSD-3-Clause */
/* ha topo: the RDMA devices as hawser sees them, with the settings in force. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "tools/ha.h"
#include "topo/device.h"
#include "topo/gid.h"
#include "topo/pci.h"
#include "verbs/dlopen.h"

static void device_print(int index, const struct ha_topo_device *dev)
{
	char gid[HA_GID_TEXT_MAX];

	printf("[%d] %s port %d  %s %g Gb/s  MTU %d\n", index, dev->name, dev->port,
	       dev->is_ethernet ? "RoCE" : "InfiniBand", dev->speed_mbps / 1000.0, 128 << dev->mtu);
	printf("    PCI      %s%s, NUMA node %d\n", *dev->pci_path ? dev->pci_path : "none (a software NIC)",
	       dev->is_virtual ? " (virtual function)" : "", dev->numa_node);
	printf("    GUID     %016" PRIx64 " (card %016" PRIx64 ")\n", dev->node_guid, dev->guid);
	if (dev->is_ethernet)
		printf("    GID      %d: %s, RoCE v%d\n", dev->gid_index, ha_gid_text(&dev->gid, gid),
		       dev->roce_version);
	else
		printf("    address  LID %d, GID %d: %s\n", dev->lid, dev->gid_index, ha_gid_text(&dev->gid, gid));
	printf("    limits   %d queue pairs, %d completions per queue, %d shared receive queues, %d SGEs per request\n",
	       dev->attr.max_qp, dev->attr.max_cqe, dev->attr.max_srq, dev->attr.max_sge);
	printf("    GPU      %s; relaxed ordering %s; adaptive routing %s%s\n",
	       dev->dma_buf && dev->peer_memory ? "dma-buf, peer memory module" :
	       dev->dma_buf			? "dma-buf" :
	       dev->peer_memory			? "peer memory module" :
						  "not directly",
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
		HA_CFG_verbs,	       HA_CFG_ib_hca,	     HA_CFG_ib_gid_index, HA_CFG_ib_addr_family,
		HA_CFG_ib_addr_range,  HA_CFG_ib_roce_version, HA_CFG_ib_device_pci_order,
	};
	char value[HA_CONFIG_TEXT_MAX];

	printf("filters:");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		ha_config_value(config, ids[i], value, sizeof(value));
		printf(" %s=%s", ha_config_name(ids[i]), *value ? value : "-");
	}
	printf("\n");
}

int ha_cmd_topo(int argc, char **argv)
{
	struct ha_verbs_ops *verbs;
	struct ha_config config;
	struct ha_topo *topo;
	int rc = 1;

	if (argc > 1) {
		int help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fprintf(help ? stdout : stderr,
			"usage: ha topo   list the RDMA devices as hawser sees them\n"
			"`ha config` names the variables that choose among them.\n");
		return help ? 0 : 2;
	}
	ha_config_load_env(&config);
	if (ha_verbs_open_library(config.verbs, &verbs))
		return 1;
	topo = calloc(1, sizeof(*topo));
	if (!topo || ha_topo_discover(verbs, &config, topo))
		goto out;
	printf("%d active port%s from %s, %d down\n", topo->ndevices, topo->ndevices == 1 ? "" : "s", verbs->name,
	       topo->down);
	filters_print(&config);
	for (int i = 0; i < topo->ndevices; i++)
		device_print(i, &topo->devices[i]);
	distances_print(topo);
	rc = topo->ndevices ? 0 : 1;
	ha_topo_release(topo);
out:
	free(topo);
	ha_verbs_close_library(verbs);
	return rc;
}
