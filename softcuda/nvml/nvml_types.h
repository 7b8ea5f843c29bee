/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nvml_types.h - the public types of NVML that softcuda has; names and numbers are the interface's
 * own
 */
#ifndef SOFTCUDA_NVML_TYPES_H
#define SOFTCUDA_NVML_TYPES_H

typedef struct nvml_device *nvmlDevice_t;

typedef enum nvmlReturn {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef enum nvmlEnableState {
	NVML_FEATURE_DISABLED = 0,
	NVML_FEATURE_ENABLED = 1
} nvmlEnableState_t;

enum {
	NVML_NVLINK_CAP_P2P_SUPPORTED = 0,
	NVML_NVLINK_CAP_SYSMEM_ACCESS = 1,
	NVML_NVLINK_CAP_P2P_ATOMICS = 2,
	NVML_NVLINK_CAP_VALID = 5,
	NVML_NVLINK_CAP_COUNT = 6
};
enum { NVML_P2P_STATUS_OK = 0, NVML_P2P_STATUS_NOT_SUPPORTED = 5 };
enum {
	NVML_P2P_CAPS_INDEX_READ = 0,
	NVML_P2P_CAPS_INDEX_WRITE = 1,
	NVML_P2P_CAPS_INDEX_NVLINK = 2,
	NVML_P2P_CAPS_INDEX_ATOMICS = 3,
	NVML_P2P_CAPS_INDEX_PROP = 4
};

#define NVML_BUS_ID_V2_SIZE 16
#define NVML_BUS_ID_SIZE 32

typedef struct nvmlPciInfo {
	char busIdLegacy[NVML_BUS_ID_V2_SIZE]; /* the only text in the oldest form of this struct */
	unsigned domain;
	unsigned bus;
	unsigned device;
	unsigned pciDeviceId;
	unsigned pciSubSystemId;
	char busId[NVML_BUS_ID_SIZE];
} nvmlPciInfo_t;

/* The form that NCCL uses, of nvmlDeviceGetNvLinkRemotePciInfo without a version in its name. */
typedef struct nvmlPciInfo_v1 {
	char busId[NVML_BUS_ID_V2_SIZE];
	unsigned domain;
	unsigned bus;
	unsigned device;
	unsigned pciDeviceId;
	unsigned pciSubSystemId;
	unsigned reserved[4];
} nvmlPciInfo_v1_t;

typedef struct nvmlMemory {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_t;

enum { NVML_VALUE_TYPE_UNSIGNED_INT = 1 };
enum { NVML_FI_DEV_NVLINK_LINK_COUNT = 91, NVML_FI_DEV_NVLINK_GET_STATE = 165 };

typedef struct nvmlFieldValue {
	unsigned fieldId;
	unsigned scopeId;
	long long timestamp;
	long long latencyUsec;
	int valueType;
	nvmlReturn_t nvmlReturn;
	union {
		double dVal;
		unsigned uiVal;
		unsigned long ulVal;
		unsigned long long ullVal;
		signed long long sllVal;
	} value;
} nvmlFieldValue_t;

#endif
