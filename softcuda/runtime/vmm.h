/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vmm.h - virtual memory management: memory without an address, addresses without memory, and
 * mappings
 *
 * Memory is an anonymous file of its own, so that it exists as long as any process has a handle or
 * a mapping of it.
 * Several mappings may show one memory at different addresses.
 */
#ifndef SOFTCUDA_VMM_H
#define SOFTCUDA_VMM_H

#include <stdbool.h>

#include "softcuda/runtime/cuda_driver.h"

#define VMM_GRANULARITY ((size_t)2 << 20) /* a GPU's */

struct vmm_memory {
	_Atomic unsigned references; /* handles and mappings */
	_Atomic unsigned handles;    /* that the program still has to release */
	int descriptor;
	size_t size;
	CUmemAllocationProp properties;
};

cudaError_t create_memory(size_t size, const CUmemAllocationProp *properties,
			  struct vmm_memory **memory);
/* A descriptor that export_memory of any process gave; the caller keeps it. */
cudaError_t import_memory(int descriptor, struct vmm_memory **memory);
cudaError_t export_memory(const struct vmm_memory *memory, int *descriptor);
/* One more handle for the program, or one less. */
void retain_memory_handle(struct vmm_memory *memory);
cudaError_t release_memory_handle(struct vmm_memory *memory);

cudaError_t reserve_addresses(size_t size, size_t alignment, void **address);
cudaError_t free_addresses(void *address, size_t size);

/* Without access until allow_access. */
cudaError_t map_memory(void *address, size_t size, size_t offset, struct vmm_memory *memory);
/* All mappings that lie in the range; none may lie in it partly. */
cudaError_t unmap_memory(void *address, size_t size);
/* flags: CU_MEM_ACCESS_FLAGS_PROT_*. All of the range must be mapped. */
cudaError_t allow_access(void *address, size_t size, int flags);

#endif
