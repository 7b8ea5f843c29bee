/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver's functions for memory: virtual memory management, attributes of pointers, DMA-BUF. */
#include <string.h>

#include "softcuda/runtime/dmabuf.h"
#include "softcuda/runtime/driver.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/memory.h"
#include "softcuda/runtime/process.h"
#include "softcuda/runtime/vmm.h"

#define ENTER_DRIVER()                                            \
	do {                                                      \
		cudaError_t entered_ = enter_runtime();           \
		if (__builtin_expect(entered_ != cudaSuccess, 0)) \
			return entered_;                          \
	} while (0)

static void *as_pointer(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

/* A handle of the API is the memory's address. NULL where it is not alive. */
static struct vmm_memory *find_memory(CUmemGenericAllocationHandle handle)
{
	struct vmm_memory *memory = (struct vmm_memory *)(uintptr_t)handle;
	return is_handle(memory, HANDLE_MEMORY) ? memory : NULL;
}

/* ---- memory ---- */

static bool is_location(const CUmemLocation *location)
{
	if (location->type == CU_MEM_LOCATION_TYPE_DEVICE)
		return is_device(location->id);
	return location->type == CU_MEM_LOCATION_TYPE_HOST ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

static CUresult check_properties(const CUmemAllocationProp *properties)
{
	if (properties == NULL || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return cudaErrorInvalidValue;
	if (!is_location(&properties->location))
		return cudaErrorInvalidDevice;
	if ((properties->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
		return cudaErrorNotSupported;
	return cudaSuccess;
}

static CUresult create_handle(CUmemGenericAllocationHandle *handle, size_t size,
			      const CUmemAllocationProp *properties, unsigned long long flags)
{
	ENTER_DRIVER();
	struct vmm_memory *memory;
	if (handle == NULL || flags != 0)
		return cudaErrorInvalidValue;
	cudaError_t error = check_properties(properties);
	if (error == cudaSuccess)
		error = create_memory(size, properties, &memory);
	if (error == cudaSuccess)
		*handle = (uintptr_t)memory;
	return error;
}

static CUresult release_handle(CUmemGenericAllocationHandle handle)
{
	ENTER_DRIVER();
	struct vmm_memory *memory = find_memory(handle);
	return memory == NULL ? cudaErrorInvalidValue : release_memory_handle(memory);
}

static CUresult retain_handle(CUmemGenericAllocationHandle *handle, void *address)
{
	ENTER_DRIVER();
	struct range range;
	if (handle == NULL || !find_range(address, &range) || range.kind != RANGE_MAPPED)
		return cudaErrorInvalidValue;
	retain_memory_handle(range.owner);
	*handle = (uintptr_t)range.owner;
	return cudaSuccess;
}

static CUresult get_properties(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
	ENTER_DRIVER();
	struct vmm_memory *memory = find_memory(handle);
	if (properties == NULL || memory == NULL)
		return cudaErrorInvalidValue;
	*properties = memory->properties;
	return cudaSuccess;
}

static CUresult get_granularity(size_t *granularity, const CUmemAllocationProp *properties,
				int option)
{
	ENTER_DRIVER();
	if (granularity == NULL || properties == NULL)
		return cudaErrorInvalidValue;
	*granularity = VMM_GRANULARITY;
	return cudaSuccess;
}

static CUresult export_handle(void *shareable, CUmemGenericAllocationHandle handle, int type,
			      unsigned long long flags)
{
	ENTER_DRIVER();
	struct vmm_memory *memory = find_memory(handle);
	if (shareable == NULL || memory == NULL || flags != 0)
		return cudaErrorInvalidValue;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cudaErrorNotSupported;
	return export_memory(memory, shareable);
}

/* The descriptor is passed in place of a pointer. */
static CUresult import_handle(CUmemGenericAllocationHandle *handle, void *shareable, int type)
{
	ENTER_DRIVER();
	struct vmm_memory *memory;
	if (handle == NULL)
		return cudaErrorInvalidValue;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cudaErrorNotSupported;
	cudaError_t error = import_memory((int)(intptr_t)shareable, &memory);
	if (error == cudaSuccess)
		*handle = (uintptr_t)memory;
	return error;
}

/* ---- addresses and mappings ---- */

/* fixed: an address that the program would like; a hint only, as on a GPU. */
static CUresult reserve_range(CUdeviceptr *address, size_t size, size_t alignment,
			      CUdeviceptr fixed, unsigned long long flags)
{
	ENTER_DRIVER();
	void *reserved;
	if (address == NULL || flags != 0)
		return cudaErrorInvalidValue;
	cudaError_t error = reserve_addresses(size, alignment, &reserved);
	if (error == cudaSuccess)
		*address = (uintptr_t)reserved;
	return error;
}

static CUresult free_reserved(CUdeviceptr address, size_t size)
{
	ENTER_DRIVER();
	return free_addresses(as_pointer(address), size);
}

static CUresult map_range(CUdeviceptr address, size_t size, size_t offset,
			  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	ENTER_DRIVER();
	struct vmm_memory *memory = find_memory(handle);
	if (memory == NULL || flags != 0)
		return cudaErrorInvalidValue;
	return map_memory(as_pointer(address), size, offset, memory);
}

static CUresult unmap_range(CUdeviceptr address, size_t size)
{
	ENTER_DRIVER();
	return unmap_memory(as_pointer(address), size);
}

static CUresult set_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list,
			   size_t count)
{
	ENTER_DRIVER();
	if (list == NULL || count == 0)
		return cudaErrorInvalidValue;
	for (size_t i = 0; i < count; i++) {
		if (!is_location(&list[i].location))
			return cudaErrorInvalidDevice;
		cudaError_t error = allow_access(as_pointer(address), size, list[i].flags);
		if (error != cudaSuccess)
			return error;
	}
	return cudaSuccess;
}

/* ---- questions about addresses ---- */

static CUresult get_address_range(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	ENTER_DRIVER();
	struct range range;
	if (!find_range(as_pointer(address), &range))
		return cudaErrorSymbolNotFound;
	if (base != NULL)
		*base = range.start;
	if (size != NULL)
		*size = range.size;
	return cudaSuccess;
}

static unsigned find_handle_types(const struct range *range)
{
	if (range->kind != RANGE_MAPPED)
		return CU_MEM_HANDLE_TYPE_NONE;
	return (unsigned)((struct vmm_memory *)range->owner)->properties.requestedHandleTypes;
}

/* Attributes that are one word of 32 bits. */
static bool find_small_attribute(const struct range *range, int attribute, unsigned *value)
{
	bool device = is_device_range(range);

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*value = device ? 2 : 1;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*value = (unsigned)range->device;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*value = 0;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*value = range->kind == RANGE_DEVICE && range->owner == NULL;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*value = 1;
		return true;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*value = find_handle_types(range);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*value = device;
		return true;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*value = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		return true;
	default:
		return false;
	}
}

/* Attributes that are one word of 64 bits. */
static bool find_large_attribute(const struct range *range, int attribute, CUdeviceptr address,
				 uint64_t *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*value = address;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*value = address;
		return !is_device_range(range);
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*value = range->number;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*value = range->start;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*value = range->size;
		return true;
	default:
		return false;
	}
}

static CUresult get_pointer_attribute(void *value, int attribute, CUdeviceptr address)
{
	ENTER_DRIVER();
	struct range range;
	unsigned small;
	uint64_t large;
	if (value == NULL || !find_range(as_pointer(address), &range))
		return cudaErrorInvalidValue;
	if (find_small_attribute(&range, attribute, &small))
		memcpy(value, &small, attribute == CU_POINTER_ATTRIBUTE_MAPPED ? 1 : sizeof(small));
	else if (find_large_attribute(&range, attribute, address, &large))
		memcpy(value, &large, sizeof(large));
	else
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* Copies of device memory are finished when a call returns, if it says so: nothing to change. */
static CUresult set_pointer_attribute(const void *value, int attribute, CUdeviceptr address)
{
	ENTER_DRIVER();
	struct range range;
	if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
	    !find_range(as_pointer(address), &range))
		return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* ---- DMA-BUF ---- */

static CUresult get_range_handle(void *handle, CUdeviceptr address, size_t size, int type,
				 unsigned long long flags)
{
	ENTER_DRIVER();
	if (handle == NULL || type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
		return cudaErrorInvalidValue;
	if ((flags & ~(unsigned long long)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE) != 0)
		return cudaErrorInvalidValue;
	return export_dmabuf(as_pointer(address), size, handle);
}

/* ---- multicast: the hardware of a switch, which is not emulated ---- */

static CUresult refuse_multicast(void)
{
	return cudaErrorNotSupported;
}

#define ENTRY(name, function)                       \
	{                                           \
		name, (driver_function *)(function) \
	}

const struct driver_entry driver_memory_functions[] = {
	ENTRY("cuMemCreate", create_handle),
	ENTRY("cuMemRelease", release_handle),
	ENTRY("cuMemRetainAllocationHandle", retain_handle),
	ENTRY("cuMemGetAllocationPropertiesFromHandle", get_properties),
	ENTRY("cuMemGetAllocationGranularity", get_granularity),
	ENTRY("cuMemExportToShareableHandle", export_handle),
	ENTRY("cuMemImportFromShareableHandle", import_handle),
	ENTRY("cuMemAddressReserve", reserve_range),
	ENTRY("cuMemAddressFree", free_reserved),
	ENTRY("cuMemMap", map_range),
	ENTRY("cuMemUnmap", unmap_range),
	ENTRY("cuMemSetAccess", set_access),
	ENTRY("cuMemGetAddressRange", get_address_range),
	ENTRY("cuPointerGetAttribute", get_pointer_attribute),
	ENTRY("cuPointerSetAttribute", set_pointer_attribute),
	ENTRY("cuMemGetHandleForAddressRange", get_range_handle),
	ENTRY("cuMulticastCreate", refuse_multicast),
	ENTRY("cuMulticastAddDevice", refuse_multicast),
	ENTRY("cuMulticastBindMem", refuse_multicast),
	ENTRY("cuMulticastBindAddr", refuse_multicast),
	ENTRY("cuMulticastUnbind", refuse_multicast),
	ENTRY("cuMulticastGetGranularity", refuse_multicast),
	{ NULL, NULL },
};
