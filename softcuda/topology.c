/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softcuda-topology - a topology file for NCCL in which NICs sit beside the emulated GPUs
 *
 * Neither these GPUs nor software NICs are in /sys, so NCCL hangs each of them off the first CPU. That is too far for PXN,
 * where a GPU sends over the NIC that is next to another GPU of its host: the two must be under one PCI switch, and NVLinks
 * must join the GPUs (SOFTCUDA_NVLINK).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/machine.h"
#include "softcuda/report.h"

#define FIRST_SWITCH_BUS 0x40u /* GPUs have 1 to 32, the NVLink switch 255 */

static const char usage[] =
	"usage: softcuda-topology NIC...\n"
	"\n"
	"Writes an XML file for NCCL_TOPO_FILE in which each GPU of this host is under a PCI switch of its own, and the NICs\n"
	"beside them, the first beside GPU 0 and so on. NIC is a PCI address as NCCL is told it; softroce's devices have\n"
	"ffff:01:00.0, ffff:02:00.0, ... unless SOFTROCE_CARD_PORTS says otherwise.\n"
	"\n"
	"Example: softcuda-topology ffff:01:00.0 ffff:02:00.0 >topology.xml\n"
	"         NCCL_TOPO_FILE=topology.xml SOFTCUDA_NVLINK=4 ha nccl alltoall --ranks 4 --hosts 2\n";

/* A function that ends a link, or (open) a switch above others. */
static void print_function(const char *address, const char *class, bool open)
{
	printf("%s<pci busid=\"%s\" class=\"%s\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"%s>\n",
	       open ? "    " : "      ", address, class, open ? "" : "/");
}

static void print_gpu(const struct machine *machine, unsigned number, char **nics, unsigned nic_count)
{
	struct machine_pci pci = find_machine_pci(machine, number);
	char address[MACHINE_PCI_ID_MAX];

	snprintf(address, sizeof(address), "%04x:%02x:00.0", pci.domain & 0xffff, (FIRST_SWITCH_BUS + number) & 0xff);
	print_function(address, "0x060400", true);
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0x1f);
	print_function(address, "0x030200", false);
	for (unsigned i = number; i < nic_count; i += machine->devices)
		print_function(nics[i], "0x020700", false);
	printf("    </pci>\n");
}

static bool is_address(const char *text)
{
	unsigned domain, bus, device, function;
	char rest;
	return strlen(text) == strlen("dddd:bb:dd.f") &&
	       sscanf(text, "%4x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &rest) == 4;
}

int main(int argc, char **argv)
{
	struct machine machine;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc < 2) {
		fputs(usage, stderr);
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		if (is_address(argv[i]))
			continue;
		report_problem("%s is not a PCI address such as ffff:01:00.0 (softcuda-topology --help explains)", argv[i]);
		return 2;
	}
	const char *wrong = read_machine(&machine);
	if (wrong != NULL) {
		report_problem("%s; correct or unset it", wrong);
		return 1;
	}
	printf("<system version=\"1\">\n  <cpu numaid=\"-1\">\n");
	for (unsigned i = 0; i < machine.devices; i++)
		print_gpu(&machine, i, argv + 1, (unsigned)argc - 1);
	printf("  </cpu>\n</system>\n");
	return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : 1;
}
