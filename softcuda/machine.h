/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - the GPUs that softcuda shows: how many, how large, at which PCI addresses
 *
 * All processes of a host read the same environment and so see the same devices. The runtime and
 * NVML both take what they report from here.
 */
#ifndef SOFTCUDA_MACHINE_H
#define SOFTCUDA_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACHINE_DEVICES_MAX 32u
#define MACHINE_NVLINKS_MAX 12u /* links of a GPU of compute capability 8.0 */
#define MACHINE_NAP_US_MAX 10000u
#define MACHINE_PCI_ID_MAX 16u /* bytes of "dddd:bb:dd.f" with its terminator, and some */

/* What NCCL looks at: 8.0 has neither NVLS nor multicast, whose kernels no host can execute. */
#define MACHINE_CAPABILITY_MAJOR 8
#define MACHINE_CAPABILITY_MINOR 0
#define MACHINE_CUDA_VERSION 12040 /* of the runtime */
/* NCCL 2.30.7 has no one-sided operations under an older one. */
#define MACHINE_DRIVER_VERSION 12050
#define MACHINE_NAME "softcuda (host memory)"

struct machine {
	unsigned devices; /* SOFTCUDA_DEVICES */
	uint64_t memory;  /* bytes of each device, SOFTCUDA_MEMORY */
	unsigned nvlinks; /* links from each device to a switch, SOFTCUDA_NVLINK */
	/* how long NCCL's threads sleep at one in 16 of their yields, SOFTCUDA_YIELD_NAP_US; 0:
	 * never */
	unsigned yield_nap_us;
	uint32_t pci_domain; /* a domain of which /sys knows nothing */
};

struct machine_pci {
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
};

/*
 * Read the environment. Returns NULL, or one line that says which variable is wrong and what it may
 * be.
 */
const char *read_machine(struct machine *machine);

/* PCI address of device `number`, 0 to devices - 1. */
struct machine_pci find_machine_pci(const struct machine *machine, unsigned number);
/*
 * The device that has the address "dddd:bb:dd.f" (hexadecimal, any case, domain of 1 to 8 digits),
 * or -1.
 */
int find_machine_device(const struct machine *machine, const char *pci_id);
/* 16 bytes that differ between the devices of a host and between hosts. */
void make_machine_uuid(const struct machine *machine, unsigned number, unsigned char uuid[16]);

#endif
