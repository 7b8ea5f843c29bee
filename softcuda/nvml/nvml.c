/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/nvml/nvml_api.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "softcuda/machine.h"
#include "softcuda/report.h"

/* A handle is the address of the device's element. */
struct nvml_device {
	char unused;
};

static struct nvml_device devices[MACHINE_DEVICES_MAX];
static struct machine machine;
/* protects what follows, and the reading of machine */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* calls of nvmlInit without their nvmlShutdown */
static unsigned initialized;
static bool complained;

/* ---- the library ---- */

nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
	nvmlReturn_t result = NVML_SUCCESS;

	pthread_mutex_lock(&lock);
	const char *wrong = initialized == 0 ? read_machine(&machine) : NULL;
	if (wrong != NULL) {
		if (!complained)
			report_problem("%s; correct or unset it", wrong);
		complained = true;
		result = NVML_ERROR_DRIVER_NOT_LOADED;
	} else {
		initialized++;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

nvmlReturn_t nvmlInit(void)
{
	return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlInit_v2(void)
{
	return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
	nvmlReturn_t result = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&lock);
	if (initialized > 0) {
		initialized--;
		result = NVML_SUCCESS;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static bool is_initialized(void)
{
	pthread_mutex_lock(&lock);
	bool yes = initialized > 0;
	pthread_mutex_unlock(&lock);
	return yes;
}

const char *nvmlErrorString(nvmlReturn_t error)
{
	switch (error) {
	case NVML_SUCCESS:
		return "Success";
	case NVML_ERROR_UNINITIALIZED:
		return "Uninitialized";
	case NVML_ERROR_INVALID_ARGUMENT:
		return "Invalid Argument";
	case NVML_ERROR_NOT_SUPPORTED:
		return "Not Supported";
	case NVML_ERROR_NOT_FOUND:
		return "Not Found";
	case NVML_ERROR_INSUFFICIENT_SIZE:
		return "Insufficient Size";
	case NVML_ERROR_DRIVER_NOT_LOADED:
		return "Driver Not Loaded";
	default:
		return "Unknown Error";
	}
}

static nvmlReturn_t copy_text(const char *from, char *to, unsigned length)
{
	if (to == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(from) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(to, from);
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	if (!is_initialized())
		return NVML_ERROR_UNINITIALIZED;
	return copy_text("softcuda " HAWSER_VERSION, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	if (version == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = MACHINE_DRIVER_VERSION;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	return nvmlSystemGetCudaDriverVersion(version);
}

/* ---- devices ---- */

/* The device's number, or -1. */
static int find_number(nvmlDevice_t device)
{
	if (device < devices || device >= devices + machine.devices)
		return -1;
	return (int)(device - devices);
}

/* What every question about a device begins with. */
static nvmlReturn_t check_device(nvmlDevice_t device, const void *answer)
{
	if (!is_initialized())
		return NVML_ERROR_UNINITIALIZED;
	if (answer == NULL || find_number(device) < 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	if (!is_initialized())
		return NVML_ERROR_UNINITIALIZED;
	if (count == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = machine.devices;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
	return nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	if (!is_initialized())
		return NVML_ERROR_UNINITIALIZED;
	if (device == NULL || index >= machine.devices)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *pci_id, nvmlDevice_t *device)
{
	if (!is_initialized())
		return NVML_ERROR_UNINITIALIZED;
	if (pci_id == NULL || device == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	int number = find_machine_device(&machine, pci_id);
	if (number < 0)
		return NVML_ERROR_NOT_FOUND;
	*device = &devices[number];
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *pci_id, nvmlDevice_t *device)
{
	return nvmlDeviceGetHandleByPciBusId_v2(pci_id, device);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	nvmlReturn_t result = check_device(device, index);
	if (result == NVML_SUCCESS)
		*index = (unsigned)find_number(device);
	return result;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	nvmlReturn_t result = check_device(device, name);
	return result == NVML_SUCCESS ? copy_text(MACHINE_NAME, name, length) : result;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	unsigned char bytes[16];
	char text[64] = "GPU-";
	nvmlReturn_t result = check_device(device, uuid);
	if (result != NVML_SUCCESS)
		return result;
	make_machine_uuid(&machine, (unsigned)find_number(device), bytes);
	for (unsigned i = 0; i < sizeof(bytes); i++) {
		bool dash = i == 4 || i == 6 || i == 8 || i == 10;
		snprintf(text + strlen(text), 4, dash ? "-%02x" : "%02x", bytes[i]);
	}
	return copy_text(text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlReturn_t result = check_device(device, pci);
	if (result != NVML_SUCCESS)
		return result;
	struct machine_pci own = find_machine_pci(&machine, (unsigned)find_number(device));
	memset(pci, 0, sizeof(*pci));
	pci->domain = own.domain;
	pci->bus = own.bus;
	pci->device = own.device;
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0", own.domain,
		 own.bus, own.device);
	snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:%02X.0", own.domain, own.bus,
		 own.device);
	return NVML_SUCCESS;
}

/* What NCCL before 2.30 takes for a device that no /sys knows; later ones ask. */
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation)
{
	nvmlReturn_t result = check_device(device, generation);
	if (result == NVML_SUCCESS)
		*generation = 3;
	return result;
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width)
{
	nvmlReturn_t result = check_device(device, width);
	if (result == NVML_SUCCESS)
		*width = 16;
	return result;
}

/* What other processes use is not known. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t result = check_device(device, memory);
	if (result == NVML_SUCCESS)
		*memory = (nvmlMemory_t) { .total = machine.memory,
					   .free = machine.memory,
					   .used = 0 };
	return result;
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
	nvmlReturn_t result = check_device(device, major);
	if (result != NVML_SUCCESS || minor == NULL)
		return result != NVML_SUCCESS ? result : NVML_ERROR_INVALID_ARGUMENT;
	*major = MACHINE_CAPABILITY_MAJOR;
	*minor = MACHINE_CAPABILITY_MINOR;
	return NVML_SUCCESS;
}

/* ---- links ---- */

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t device, nvmlDevice_t peer, int index, int *status)
{
	nvmlReturn_t result = check_device(device, status);
	if (result == NVML_SUCCESS)
		result = check_device(peer, status);
	if (result != NVML_SUCCESS)
		return result;
	if (index < NVML_P2P_CAPS_INDEX_READ || index > NVML_P2P_CAPS_INDEX_PROP)
		return NVML_ERROR_INVALID_ARGUMENT;
	bool needs_link = index == NVML_P2P_CAPS_INDEX_NVLINK;
	*status = needs_link && machine.nvlinks == 0 ? NVML_P2P_STATUS_NOT_SUPPORTED
						     : NVML_P2P_STATUS_OK;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, nvmlEnableState_t *state)
{
	nvmlReturn_t result = check_device(device, state);
	if (result != NVML_SUCCESS)
		return result;
	if (link >= machine.nvlinks)
		return NVML_ERROR_NOT_SUPPORTED;
	*state = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link, int capability,
					   unsigned *value)
{
	nvmlReturn_t result = check_device(device, value);
	if (result != NVML_SUCCESS)
		return result;
	if (link >= machine.nvlinks)
		return NVML_ERROR_NOT_SUPPORTED;
	if (capability < 0 || capability >= NVML_NVLINK_CAP_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	bool has = capability == NVML_NVLINK_CAP_P2P_SUPPORTED ||
		   capability == NVML_NVLINK_CAP_P2P_ATOMICS || capability == NVML_NVLINK_CAP_VALID;
	*value = has ? 1 : 0;
	return NVML_SUCCESS;
}

/*
 * All links lead to one switch. Its address is in no /sys, from which NCCL concludes that it is a
 * switch.
 */
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(nvmlDevice_t device, unsigned link,
					      nvmlPciInfo_v1_t *pci)
{
	nvmlReturn_t result = check_device(device, pci);
	if (result != NVML_SUCCESS)
		return result;
	if (link >= machine.nvlinks)
		return NVML_ERROR_NOT_SUPPORTED;
	memset(pci, 0, sizeof(*pci));
	pci->domain = machine.pci_domain;
	pci->bus = 0xff;
	snprintf(pci->busId, sizeof(pci->busId), "%04X:%02X:%02X.0", pci->domain, pci->bus,
		 pci->device);
	return NVML_SUCCESS;
}

static nvmlReturn_t read_field(nvmlFieldValue_t *field)
{
	field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
	switch (field->fieldId) {
	case NVML_FI_DEV_NVLINK_LINK_COUNT:
		field->value.uiVal = machine.nvlinks;
		return NVML_SUCCESS;
	case NVML_FI_DEV_NVLINK_GET_STATE:
		field->value.uiVal = field->scopeId < machine.nvlinks ? NVML_FEATURE_ENABLED
								      : NVML_FEATURE_DISABLED;
		return NVML_SUCCESS;
	default:
		return NVML_ERROR_NOT_SUPPORTED;
	}
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	nvmlReturn_t result = check_device(device, values);
	for (int i = 0; result == NVML_SUCCESS && i < count; i++)
		values[i].nvmlReturn = read_field(&values[i]);
	return result;
}

/* Fabrics between hosts and racks: not here. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *info)
{
	return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, void *info)
{
	return NVML_ERROR_NOT_SUPPORTED;
}
