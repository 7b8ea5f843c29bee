/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/attributes.h"

#include <string.h>

#include "softcuda/runtime/process.h"

/*
 * Of a GPU of compute capability 8.0. Nothing here executes blocks and warps; programs size their
 * launches by these.
 */
#define WARP 32
#define THREADS_PER_BLOCK 1024
#define THREADS_PER_PROCESSOR 2048
#define BLOCKS_PER_PROCESSOR 32
#define PROCESSORS 108
#define REGISTERS 65536
#define SHARED_PER_BLOCK (48 << 10)
#define SHARED_PER_BLOCK_OPTIN (163 << 10)
#define SHARED_PER_PROCESSOR (164 << 10)
#define SHARED_RESERVED (1 << 10)
#define CLOCK_KHZ 1410000
#define MEMORY_CLOCK_KHZ 1215000
#define BUS_BITS 5120
#define L2_BYTES (40 << 20)

_Static_assert(sizeof(struct cudaDeviceProp) == 1032, "CUDA 12's size");
_Static_assert(offsetof(struct cudaDeviceProp, major) == 360, "CUDA 12's layout");
_Static_assert(offsetof(struct cudaDeviceProp, surfaceAlignment) == 568, "CUDA 12's layout");
_Static_assert(offsetof(struct cudaDeviceProp, managedMemory) == 652, "CUDA 12's layout");

static void fill_identity(struct cudaDeviceProp *properties, unsigned number)
{
	struct machine_pci pci = find_machine_pci(this_machine(), number);

	strncpy(properties->name, MACHINE_NAME, sizeof(properties->name) - 1);
	make_machine_uuid(this_machine(), number, (unsigned char *)properties->uuid.bytes);
	properties->pciDomainID = (int)pci.domain;
	properties->pciBusID = (int)pci.bus;
	properties->pciDeviceID = (int)pci.device;
	properties->totalGlobalMem = this_machine()->memory;
	properties->major = MACHINE_CAPABILITY_MAJOR;
	properties->minor = MACHINE_CAPABILITY_MINOR;
}

static void fill_execution(struct cudaDeviceProp *properties)
{
	properties->sharedMemPerBlock = SHARED_PER_BLOCK;
	properties->sharedMemPerBlockOptin = SHARED_PER_BLOCK_OPTIN;
	properties->sharedMemPerMultiprocessor = SHARED_PER_PROCESSOR;
	properties->reservedSharedMemPerBlock = SHARED_RESERVED;
	properties->regsPerBlock = REGISTERS;
	properties->regsPerMultiprocessor = REGISTERS;
	properties->warpSize = WARP;
	properties->maxThreadsPerBlock = THREADS_PER_BLOCK;
	properties->maxThreadsPerMultiProcessor = THREADS_PER_PROCESSOR;
	properties->maxBlocksPerMultiProcessor = BLOCKS_PER_PROCESSOR;
	properties->maxThreadsDim[0] = THREADS_PER_BLOCK;
	properties->maxThreadsDim[1] = THREADS_PER_BLOCK;
	properties->maxThreadsDim[2] = 64;
	properties->maxGridSize[0] = 0x7fffffff;
	properties->maxGridSize[1] = 65535;
	properties->maxGridSize[2] = 65535;
	properties->multiProcessorCount = PROCESSORS;
	properties->concurrentKernels = 1;
}

void fill_properties(struct cudaDeviceProp *properties, unsigned ordinal)
{
	memset(properties, 0, sizeof(*properties));
	fill_identity(properties, find_device_number(ordinal));
	fill_execution(properties);
	properties->memPitch = 0x7fffffff;
	properties->clockRate = CLOCK_KHZ;
	properties->memoryClockRate = MEMORY_CLOCK_KHZ;
	properties->memoryBusWidth = BUS_BITS;
	properties->l2CacheSize = L2_BYTES;
	properties->totalConstMem = 65536;
	properties->textureAlignment = 512;
	properties->texturePitchAlignment = 32;
	properties->surfaceAlignment = 512;
	properties->deviceOverlap = 1;
	properties->asyncEngineCount = 3;
	properties->canMapHostMemory = 1;
	properties->unifiedAddressing = 1;
	properties->hostNativeAtomicSupported = 1;
	properties->canUseHostPointerForRegisteredMem = 1;
	properties->hostRegisterSupported = 1;
	properties->streamPrioritiesSupported = 0;
	properties->memoryPoolsSupported = 1;
	properties->gpuDirectRDMASupported = 1;
	properties->gpuDirectRDMAFlushWritesOptions = 1;
	properties->singleToDoublePrecisionPerfRatio = 2;
}

struct attribute_value {
	int attribute;
	int value;
};

/*
 * Numbers are the interface's own; attributes of the driver API are among them. What is not here is
 * 0.
 */
static const struct attribute_value fixed_values[] = {
	{ 1, THREADS_PER_BLOCK },
	{ 2, THREADS_PER_BLOCK },
	{ 3, THREADS_PER_BLOCK },
	{ 4, 64 },
	{ 5, 0x7fffffff },
	{ 6, 65535 },
	{ 7, 65535 },
	{ 8, SHARED_PER_BLOCK },
	{ 9, 65536 },
	{ 10, WARP },
	{ 11, 0x7fffffff },
	{ 12, REGISTERS },
	{ 13, CLOCK_KHZ },
	{ 14, 512 },
	{ 15, 1 },
	{ 16, PROCESSORS },
	{ 19, 1 }, /* host memory can be mapped */
	{ 30, 512 },
	{ 31, 1 },
	{ 36, MEMORY_CLOCK_KHZ },
	{ 37, BUS_BITS },
	{ 38, L2_BYTES },
	{ 39, THREADS_PER_PROCESSOR },
	{ 40, 3 },
	{ 41, 1 }, /* unified addresses */
	{ 51, 32 },
	{ 75, MACHINE_CAPABILITY_MAJOR },
	{ 76, MACHINE_CAPABILITY_MINOR },
	{ 81, SHARED_PER_PROCESSOR },
	{ 82, REGISTERS },
	{ 86, 1 }, /* atomics between device and host */
	{ 87, 2 },
	{ 91, 1 }, /* registered host memory has one address */
	{ 92, 1 }, /* stream memory operations */
	{ 93, 1 }, /* of 64 bits */
	{ 94, 1 }, /* and waits for a value that is not there */
	{ 97, SHARED_PER_BLOCK_OPTIN },
	{ 98, 1 }, /* remote writes can be flushed */
	{ 99, 1 },
	{ 102, 1 }, /* virtual memory management */
	{ 103, 1 }, /* its handles as file descriptors */
	{ 106, BLOCKS_PER_PROCESSOR },
	{ 110, 1 }, /* GPUDirect RDMA with it */
	{ 111, SHARED_RESERVED },
	{ 115, 1 },   /* memory pools */
	{ 116, 1 },   /* GPUDirect RDMA */
	{ 117, 1 },   /* its writes are flushed from the host */
	{ 118, 200 }, /* its writes are ordered for all devices */
	{ 124, 1 },   /* DMA-BUF */
	{ 134, 0 },   /* host NUMA node */
};

static bool read_address_attribute(int attribute, unsigned ordinal, int *value)
{
	struct machine_pci pci = find_machine_pci(this_machine(), find_device_number(ordinal));

	switch (attribute) {
	case cudaDevAttrPciBusId:
		*value = (int)pci.bus;
		return true;
	case cudaDevAttrPciDeviceId:
		*value = (int)pci.device;
		return true;
	case cudaDevAttrPciDomainId:
		*value = (int)pci.domain;
		return true;
	default:
		return false;
	}
}

bool read_attribute(int attribute, unsigned ordinal, int *value)
{
	if (attribute < 1 || attribute > cudaDevAttrMax)
		return false;
	if (read_address_attribute(attribute, ordinal, value))
		return true;
	*value = 0;
	for (size_t i = 0; i < sizeof(fixed_values) / sizeof(fixed_values[0]); i++)
		if (fixed_values[i].attribute == attribute)
			*value = fixed_values[i].value;
	return true;
}
