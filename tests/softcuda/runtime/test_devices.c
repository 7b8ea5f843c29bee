/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices: as many as the environment says, each with an address of its own, the same for the
 * runtime and for NVML. */
#include "tests/softcuda/runtime/support.h"

#include <string.h>
#include <unistd.h>

#include "softcuda/nvml/nvml_api.h"

static void bus_addresses(void)
{
	char ids[3][32], path[160];
	int found, count = 0;

	OK(cudaGetDeviceCount(&count));
	CHECK_INT(count, 3);
	for (int i = 0; i < 3; i++) {
		struct cudaDeviceProp properties;
		OK(cudaDeviceGetPCIBusId(ids[i], sizeof(ids[i]), i));
		OK(cudaDeviceGetByPCIBusId(&found, ids[i]));
		CHECK_INT(found, i);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", ids[i]);
		CHECK(access(path, F_OK) != 0);
		OK(cudaGetDeviceProperties_v2(&properties, i));
		CHECK(properties.totalGlobalMem == 1u << 30 && properties.major == 8);
		for (int k = 0; k < i; k++)
			CHECK(strcmp(ids[i], ids[k]) != 0);
	}
	FAILS(cudaDeviceGetPCIBusId(ids[0], 5, 0), cudaErrorInvalidValue);
	FAILS(cudaDeviceGetPCIBusId(ids[0], sizeof(ids[0]), 3), cudaErrorInvalidDevice);
	FAILS(cudaDeviceGetByPCIBusId(&found, "0000:00:00.0"), cudaErrorInvalidDevice);
	FAILS(cudaDeviceGetByPCIBusId(&found, "nonsense"), cudaErrorInvalidDevice);
}

static void current_device(void)
{
	int device = 77, value;
	void *pointer;
	cudaStream_t stream;
	struct cudaPointerAttributes attributes;

	OK(cudaGetDevice(&device));
	CHECK_INT(device, 0);
	OK(cudaSetDevice(2));
	OK(cudaMalloc(&pointer, 10));
	OK(cudaPointerGetAttributes(&attributes, pointer));
	CHECK_INT(attributes.device, 2);
	OK(cudaStreamCreate(&stream));
	OK(cudaSetDevice(0));
	OK(cudaStreamGetDevice(stream, &device));
	CHECK_INT(device, 2);
	OK(cudaMemsetAsync(pointer, 1, 10, stream));
	OK(cudaStreamSynchronize(stream));
	OK(cudaFree(pointer));
	OK(cudaStreamDestroy(stream));
	FAILS(cudaSetDevice(3), cudaErrorInvalidDevice);
	FAILS(cudaSetDevice(-1), cudaErrorInvalidDevice);
	OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1));
	CHECK_INT(value, 8);
	OK(cudaDeviceGetAttribute(&value, cudaDevAttrDmaBufSupported, 1));
	CHECK_INT(value, 1);
	FAILS(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)5000, 1), cudaErrorInvalidValue);
}

/* Work of one device is not waited for on another one. */
static void devices_are_independent(void)
{
	struct gate gate;
	cudaStream_t stream;

	make_gate(&gate);
	OK(cudaSetDevice(1));
	OK(cudaStreamCreate(&stream));
	close_gate(&gate, stream);
	FAILS(cudaStreamQuery(NULL), cudaErrorNotReady);
	OK(cudaSetDevice(0));
	OK(cudaStreamQuery(NULL));
	OK(cudaDeviceSynchronize());
	open_gate(&gate);
	OK(cudaStreamSynchronize(stream));
	OK(cudaStreamDestroy(stream));
}

static void peer_access(void)
{
	int can = -1;
	void *here, *there;

	OK(cudaDeviceCanAccessPeer(&can, 0, 1));
	CHECK_INT(can, 1);
	OK(cudaDeviceCanAccessPeer(&can, 1, 1));
	CHECK_INT(can, 0);
	OK(cudaDeviceEnablePeerAccess(1, 0));
	FAILS(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
	FAILS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorInvalidDevice);
	OK(cudaDeviceDisablePeerAccess(1));
	FAILS(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	OK(cudaMalloc(&here, 100));
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&there, 100));
	OK(cudaSetDevice(0));
	OK(cudaMemset(there, 6, 100));
	OK(cudaMemcpyPeer(here, 0, there, 1, 100));
	OK(cudaDeviceSynchronize());
	CHECK(((char *)here)[99] == 6);
	OK(cudaFree(here));
	OK(cudaFree(there));
}

/* ---- NVML ---- */

static void nvml_knows_the_devices(void)
{
	nvmlDevice_t device, by_address;
	nvmlPciInfo_t pci;
	char id[32], uuid[64], text[8];
	unsigned count = 0, index = 77, generation = 0, width = 0;
	int major = 0, minor = -1, status = -1;

	CHECK_INT(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
	CHECK_INT(nvmlInit_v2(), NVML_SUCCESS);
	CHECK_INT(nvmlDeviceGetCount_v2(&count), NVML_SUCCESS);
	CHECK_INT(count, 3);
	CHECK_INT(nvmlDeviceGetHandleByIndex_v2(3, &device), NVML_ERROR_INVALID_ARGUMENT);
	for (unsigned i = 0; i < 3; i++) {
		OK(cudaDeviceGetPCIBusId(id, sizeof(id), (int)i));
		CHECK_INT(nvmlDeviceGetHandleByIndex_v2(i, &device), NVML_SUCCESS);
		CHECK_INT(nvmlDeviceGetHandleByPciBusId_v2(id, &by_address), NVML_SUCCESS);
		CHECK(device == by_address);
		CHECK_INT(nvmlDeviceGetIndex(device, &index), NVML_SUCCESS);
		CHECK_INT(index, i);
		CHECK_INT(nvmlDeviceGetPciInfo_v3(device, &pci), NVML_SUCCESS);
		CHECK_TEXT(pci.busIdLegacy, id);
		CHECK_INT(nvmlDeviceGetCurrPcieLinkGeneration(device, &generation), NVML_SUCCESS);
		CHECK_INT(nvmlDeviceGetCurrPcieLinkWidth(device, &width), NVML_SUCCESS);
		CHECK(generation == 3 && width == 16); /* NCCL 2.30.7 crashes without them */
		CHECK_INT(nvmlDeviceGetUUID(device, uuid, sizeof(uuid)), NVML_SUCCESS);
		CHECK_INT(strlen(uuid), 40);
		CHECK_INT(nvmlDeviceGetP2PStatus(device, by_address, NVML_P2P_CAPS_INDEX_READ,
						 &status),
			  NVML_SUCCESS);
		CHECK_INT(status, NVML_P2P_STATUS_OK);
	}
	CHECK_INT(nvmlDeviceGetName(device, text, sizeof(text)), NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_INT(nvmlDeviceGetCudaComputeCapability(device, &major, &minor), NVML_SUCCESS);
	CHECK(major == 8 && minor == 0);
	CHECK_INT(nvmlDeviceGetHandleByPciBusId_v2("0000:00:00.0", &device), NVML_ERROR_NOT_FOUND);
}

/* SOFTCUDA_NVLINK=2: two links to a switch, and no more. */
static void nvml_knows_the_links(void)
{
	nvmlDevice_t device;
	nvmlEnableState_t state = NVML_FEATURE_DISABLED;
	nvmlPciInfo_v1_t remote[2];
	nvmlFieldValue_t field = { .fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT };
	unsigned can = 0;

	for (unsigned i = 0; i < 2; i++) {
		CHECK_INT(nvmlDeviceGetHandleByIndex_v2(i, &device), NVML_SUCCESS);
		CHECK_INT(nvmlDeviceGetNvLinkCapability(device, 1, NVML_NVLINK_CAP_P2P_SUPPORTED,
							&can),
			  NVML_SUCCESS);
		CHECK_INT(can, 1);
		CHECK_INT(nvmlDeviceGetNvLinkState(device, 1, &state), NVML_SUCCESS);
		CHECK_INT(state, NVML_FEATURE_ENABLED);
		CHECK_INT(nvmlDeviceGetNvLinkRemotePciInfo(device, i, &remote[i]), NVML_SUCCESS);
		CHECK_INT(nvmlDeviceGetNvLinkState(device, 2, &state), NVML_ERROR_NOT_SUPPORTED);
	}
	CHECK_TEXT(remote[0].busId, remote[1].busId); /* one switch for all */
	CHECK_INT(nvmlDeviceGetFieldValues(device, 1, &field), NVML_SUCCESS);
	CHECK(field.nvmlReturn == NVML_SUCCESS && field.value.uiVal == 2);
	CHECK_INT(nvmlShutdown(), NVML_SUCCESS);
	CHECK_INT(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
}

static void entry_points(void)
{
	void *function = (void *)1;
	int status = -1;
	const char *text = NULL;
	CUresult (*describe)(CUresult, const char **) =
		(CUresult(*)(CUresult, const char **))find_driver("cuGetErrorString");

	OK(describe(cudaErrorNotSupported, &text));
	CHECK_TEXT(text, cudaGetErrorString(cudaErrorNotSupported));
	CHECK_TEXT(cudaGetErrorName(cudaErrorNotSupported), "cudaErrorNotSupported");
	CHECK_TEXT(cudaGetErrorName((cudaError_t)4711), "unrecognized error code");
	OK(cudaGetDriverEntryPoint("cuNoSuchFunction", &function, 0, &status));
	CHECK(function == NULL);
	CHECK_INT(status, cudaDriverEntryPointSymbolNotFound);
}

/* NCCL 2.30.7 asks the driver for both; its one-sided operations want a driver of 12.5 or later. */
static void driver_knows_the_devices(void)
{
	struct cudaDeviceProp properties;
	cudaUUID_t uuid, other;
	int driver = 0, runtime = 0;
	CUresult (*get_uuid)(cudaUUID_t *, CUdevice) =
		(CUresult(*)(cudaUUID_t *, CUdevice))find_driver("cuDeviceGetUuid");

	OK(get_uuid(&uuid, 1));
	OK(cudaGetDeviceProperties_v2(&properties, 1));
	CHECK(!memcmp(&uuid, &properties.uuid, sizeof(uuid)));
	OK(get_uuid(&other, 2));
	CHECK(memcmp(&uuid, &other, sizeof(uuid)) != 0);
	CHECK_INT(get_uuid(&uuid, 3), cudaErrorInvalidDevice);
	CHECK_INT(get_uuid(NULL, 1), cudaErrorInvalidValue);
	OK(cudaDriverGetVersion(&driver));
	OK(cudaRuntimeGetVersion(&runtime));
	CHECK(driver >= 12050 && driver >= runtime);
}

int main(void)
{
	setenv("SOFTCUDA_DEVICES", "3", 1);
	setenv("SOFTCUDA_MEMORY", "1G", 1);
	setenv("SOFTCUDA_NVLINK", "2", 1);
	bus_addresses();
	current_device();
	devices_are_independent();
	peer_access();
	nvml_knows_the_devices();
	nvml_knows_the_links();
	entry_points();
	driver_knows_the_devices();
	return 0;
}
