/* SPDX-License-Identifier: BSD-3-Clause */
/* The way between GPU memory and NIC, the memory's place, and the daemons. */
#include <stdio.h>
#include <string.h>

#include "rdma/topo/sysfs.h"
#include "tools/doctor/checks.h"

static void check_direct(const struct ha_topo_device *dev, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (dev->dma_buf || dev->peer_memory) {
		doctor_add(report, DOCTOR_FINE, "gpu.direct", dev->name, "GPU memory by %s",
			   dev->dma_buf ? "dma-buf" : "the peer memory module");
		return;
	}
	f = doctor_add(report, DOCTOR_WARNING, "gpu.direct", dev->name,
		       "it reaches no GPU memory: neither dma-buf nor a peer memory module");
	doctor_cost(f, "every byte is copied through host memory");
	doctor_mend(f, "modprobe nvidia_peermem; or a kernel and driver with dma-buf (Linux 5.12, "
		       "rdma-core 34)");
}

static void check_ordering(const struct doctor_host *host, const struct ha_topo_device *dev,
			   struct doctor_report *report)
{
	struct doctor_finding *f;

	if (dev->relaxed_ordering)
		return;
	f = doctor_add(report, DOCTOR_NOTE, "pci.ordering", dev->name,
		       "memory is registered without relaxed ordering%s",
		       host->config->ib_pci_relaxed_ordering ? ": the library of verbs is too old"
							     : "");
	doctor_cost(f, "on some platforms writes to memory are slower, most in virtual machines");
	doctor_mend(f, host->config->ib_pci_relaxed_ordering
			       ? "install rdma-core 28 or later"
			       : "unset NCCL_IB_PCI_RELAXED_ORDERING");
}

static void check_iommu(const struct doctor_host *host, const struct ha_topo_device *dev,
			struct doctor_report *report)
{
	struct doctor_finding *f;
	char type[32];

	if (ha_sysfs_read(host->config->sysfs_root, type, sizeof(type), "%s/iommu_group/type",
			  dev->place.pci_path) <= 0 ||
	    strncmp(type, "DMA", 3))
		return;
	f = doctor_add(report, DOCTOR_WARNING, "pci.iommu", dev->name,
		       "the IOMMU translates each of its accesses (%s)", type);
	doctor_cost(f, "bandwidth and latency, most with GPU memory");
	doctor_mend(f, "iommu=pt on the kernel's command line");
}

static int count_nodes(const char *root)
{
	int nodes = 0;

	while (ha_sysfs_exists(root, "/sys/devices/system/node/node%d", nodes))
		nodes++;
	return nodes;
}

static void check_numa(const struct doctor_host *host, struct doctor_report *report)
{
	const char *root = host->config->sysfs_root;
	struct doctor_finding *f;

	if (count_nodes(root) < 2)
		return;
	for (int i = 0; i < host->topo->ndevices; i++) {
		const struct ha_topo_device *dev = &host->topo->devices[i];

		if (dev->place.is_soft || dev->place.numa_node >= 0)
			continue;
		f = doctor_add(report, DOCTOR_NOTE, "numa.node", dev->name,
			       "its NUMA node is not known");
		doctor_cost(f, "NCCL may pair it with a GPU of the other socket");
		doctor_mend(f, "update the firmware of the board; in a virtual machine let it show "
			       "the host's topology");
	}
	if (ha_sysfs_number(root, 0, "/proc/sys/kernel/numa_balancing") < 1)
		return;
	f = doctor_add(report, DOCTOR_NOTE, "numa.balancing", NULL,
		       "the kernel moves pages between NUMA nodes by itself");
	doctor_cost(f, "short pauses in the threads that drive the NIC");
	doctor_mend(f, "sysctl -w kernel.numa_balancing=0");
}

static void doctor_check_gpu(const struct doctor_host *host, struct doctor_report *report)
{
	bool gpu = doctor_has_gpu(host);

	for (int i = 0; i < host->topo->ndevices; i++) {
		const struct ha_topo_device *dev = &host->topo->devices[i];

		if (dev->place.is_soft)
			continue;
		if (gpu)
			check_direct(dev, report);
		check_ordering(host, dev, report);
		check_iommu(host, dev, report);
	}
	check_numa(host, report);
}

/* ---- daemons ---- */

static bool wants_agent(const struct ha_config *config)
{
	bool mpib = *config->mpib_hca_sout && *config->mpib_hca_sup;

	return (mpib && config->mpib_mode == 1) || config->policy == HA_POLICY_AGENT;
}

static void find_silent(struct doctor_report *report, bool wanted, const char *check,
			const char *socket, const char *cost, const char *unit)
{
	struct doctor_finding *f;

	f = doctor_add(report, wanted ? DOCTOR_WARNING : DOCTOR_NOTE, check, socket,
		       "nobody accepts at this socket");
	doctor_cost(f, "%s", cost);
	doctor_mend(f, "systemctl start %s", unit);
}

static void doctor_check_daemons(const struct doctor_host *host, struct doctor_report *report)
{
	bool agent = wants_agent(host->config), backend = host->env("NETCCL_BACKEND") != NULL;

	if (host->agent == DOCTOR_DAEMON_ANSWERS)
		doctor_add(report, DOCTOR_FINE, "agent", host->config->agent_socket, "it answers");
	else if (agent || host->agent == DOCTOR_DAEMON_SILENT)
		find_silent(report, agent, "agent", host->config->agent_socket,
			    "unequal NICs share traffic without hints", "ha-agent");
	if (host->backend == DOCTOR_DAEMON_ANSWERS)
		doctor_add(report, DOCTOR_FINE, "backend", NULL, "it answers");
	else if (backend || host->backend == DOCTOR_DAEMON_SILENT)
		find_silent(report, backend, "backend", host->env("NETCCL_BACKEND"),
			    "sums are made by the hosts, not in the network", "ha-backend");
}

void doctor_check_all(const struct doctor_host *host, struct doctor_report *report)
{
	doctor_check_plugin(host, report);
	doctor_check_nccl(host, report);
	doctor_check_verbs(host, report);
	doctor_check_environment(host, report);
	doctor_check_timeouts(host, report);
	doctor_check_limits(host, report);
	doctor_check_oob(host, report);
	doctor_check_ports(host, report);
	doctor_check_standby(host, report);
	doctor_check_pci(host, report);
	doctor_check_gpu(host, report);
	doctor_check_daemons(host, report);
}
