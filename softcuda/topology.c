/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softcuda-topology - a topology file for NCCL in which NICs sit beside the emulated GPUs
 *
 * Neither these GPUs nor software NICs are in /sys, so NCCL hangs each of them off the first CPU.
 * That is too far for PXN, where a GPU sends over the NIC that is next to another GPU of its host:
 * the two must be under one
 * PCI switch, and NVLinks must join the GPUs (SOFTCUDA_NVLINK).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "softcuda/machine.h"
#include "softcuda/report.h"

#define FIRST_SWITCH_BUS 0x40u /* GPUs have 1 to 32, the NVLink switch 255 */

#define NICS_MAX 64

struct options {
	const char *nic[NICS_MAX];
	unsigned nics;
};

#define HA_TARGET struct options

static const struct ha_option operands[] = {
	{ "NIC", 0, NULL,
	  "a PCI address as NCCL is given it; softroce's devices have ffff:01:00.0, ffff:02:00.0, "
	  "... unless SOFTROCE_CARD_PORTS "
	  "says otherwise",
	  HA_LIST(nic, nics, NICS_MAX) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "softcuda-topology",
	.about = "Writes an XML file for NCCL_TOPO_FILE in which each GPU of this host is under a "
		 "PCI switch of its own, and the NICs "
		 "beside them, the first beside GPU 0 and so on.",
	.operands = operands,
	.needed = 1,
	.notes = "Example: softcuda-topology ffff:01:00.0 ffff:02:00.0 >topology.xml\n"
		 "NCCL_TOPO_FILE=topology.xml SOFTCUDA_NVLINK=4 ha nccl alltoall --ranks 4 --hosts "
		 "2",
};

/* A function that ends a link, or (open) a switch above others. */
static void print_function(const char *address, const char *class, bool open)
{
	printf("%s<pci busid=\"%s\" class=\"%s\" link_speed=\"16.0 GT/s PCIe\" "
	       "link_width=\"16\"%s>\n",
	       open ? "    " : "      ", address, class, open ? "" : "/");
}

static void print_gpu(const struct machine *machine, unsigned number, const char **nics,
		      unsigned nic_count)
{
	struct machine_pci pci = find_machine_pci(machine, number);
	char address[MACHINE_PCI_ID_MAX];

	snprintf(address, sizeof(address), "%04x:%02x:00.0", pci.domain & 0xffff,
		 (FIRST_SWITCH_BUS + number) & 0xff);
	print_function(address, "0x060400", true);
	snprintf(address, sizeof(address), "%04x:%02x:%02x.0", pci.domain & 0xffff, pci.bus & 0xff,
		 pci.device & 0x1f);
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
	struct options options = { 0 };
	struct machine machine;
	int result = ha_options_parse(&program, argc, argv, &options);

	if (result)
		return result - 1;
	for (unsigned i = 0; i < options.nics; i++) {
		if (is_address(options.nic[i]))
			continue;
		report_problem("%s is not a PCI address such as ffff:01:00.0 (softcuda-topology "
			       "--help explains)",
			       options.nic[i]);
		return 2;
	}
	const char *wrong = read_machine(&machine);
	if (wrong != NULL) {
		report_problem("%s; correct or unset it", wrong);
		return 1;
	}
	printf("<system version=\"1\">\n  <cpu numaid=\"-1\">\n");
	for (unsigned i = 0; i < machine.devices; i++)
		print_gpu(&machine, i, options.nic, options.nics);
	printf("  </cpu>\n</system>\n");
	return fflush(stdout) == 0 && ferror(stdout) == 0 ? 0 : 1;
}
