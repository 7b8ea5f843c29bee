/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors, versions and devices. */
#include <stdio.h>
#include <string.h>

#include "softcuda/runtime/attributes.h"
#include "softcuda/runtime/capture.h"
#include "softcuda/runtime/cuda_api.h"
#include "softcuda/runtime/device.h"
#include "softcuda/runtime/process.h"

cudaError_t cudaGetLastError(void)
{
	return last_error(1);
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error(0);
}

const char *cudaGetErrorName(cudaError_t error)
{
	return find_error_name(error);
}

const char *cudaGetErrorString(cudaError_t error)
{
	return find_error_text(error);
}

static cudaError_t report_version(int *version, int number)
{
	if (version == NULL)
		return record_error(cudaErrorInvalidValue);
	*version = number;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	return report_version(version, MACHINE_CUDA_VERSION);
}

cudaError_t cudaDriverGetVersion(int *version)
{
	return report_version(version, MACHINE_DRIVER_VERSION);
}

cudaError_t cudaGetDeviceCount(int *count)
{
	ENTER_RUNTIME();
	if (count == NULL)
		return record_error(cudaErrorInvalidValue);
	*count = (int)count_devices();
	return record_error(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaSetDevice(int device)
{
	ENTER_RUNTIME();
	if (!is_device(device))
		return record_error(cudaErrorInvalidDevice);
	set_current_device(device);
	return cudaSuccess;
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	ENTER_RUNTIME();
	return record_error(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *device)
{
	ENTER_RUNTIME();
	if (count_devices() == 0)
		return record_error(cudaErrorNoDevice);
	if (device == NULL)
		return record_error(cudaErrorInvalidValue);
	*device = current_device();
	return cudaSuccess;
}

cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
	ENTER_RUNTIME();
	if (flags == NULL)
		return record_error(cudaErrorInvalidValue);
	*flags = 0x08; /* cudaDeviceMapHost, which is always so */
	return cudaSuccess;
}

/* How threads wait is not chosen by the program here; all the flags are about that. */
cudaError_t cudaSetDeviceFlags(unsigned flags)
{
	ENTER_RUNTIME();
	return record_error((flags & ~0xffu) != 0 ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp *properties, int device)
{
	ENTER_RUNTIME();
	if (properties == NULL)
		return record_error(cudaErrorInvalidValue);
	if (!is_device(device))
		return record_error(cudaErrorInvalidDevice);
	fill_properties(properties, (unsigned)device);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
	ENTER_RUNTIME();
	if (!is_device(device))
		return record_error(cudaErrorInvalidDevice);
	if (value == NULL || !read_attribute((int)attribute, (unsigned)device, value))
		return record_error(cudaErrorInvalidValue);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *pci_id, int size, int device)
{
	ENTER_RUNTIME();
	if (!is_device(device))
		return record_error(cudaErrorInvalidDevice);
	if (pci_id == NULL || size <= 0)
		return record_error(cudaErrorInvalidValue);
	struct machine_pci pci =
		find_machine_pci(this_machine(), find_device_number((unsigned)device));
	int length =
		snprintf(pci_id, (size_t)size, "%04X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
	return record_error(length >= size ? cudaErrorInvalidValue : cudaSuccess);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *pci_id)
{
	ENTER_RUNTIME();
	if (device == NULL || pci_id == NULL)
		return record_error(cudaErrorInvalidValue);
	int number = find_machine_device(this_machine(), pci_id);
	for (unsigned i = 0; number >= 0 && i < count_devices(); i++) {
		if (find_device_number(i) == (unsigned)number) {
			*device = (int)i;
			return cudaSuccess;
		}
	}
	return record_error(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceSynchronize(void)
{
	ENTER_RUNTIME();
	if (is_worker_thread())
		return record_error(cudaErrorNotPermitted);
	cudaError_t error = refuse_unsafe_call();
	if (error == cudaSuccess)
		error = synchronize_device(this_device());
	return record_error(error);
}

/*
 * Every object that the program did not destroy stays valid; otherwise a library's would vanish
 * under it.
 */
cudaError_t cudaDeviceReset(void)
{
	return cudaDeviceSynchronize();
}

#define LIMITS 7
static size_t limits[LIMITS] = { 1024, 1 << 20, 8 << 20, 0, 0, 0, 0 };

/*
 * The limits are of threads and heaps on a device, which does not exist: they are kept and have no
 * effect.
 */
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	ENTER_RUNTIME();
	if (value == NULL)
		return record_error(cudaErrorInvalidValue);
	if ((unsigned)limit >= LIMITS)
		return record_error(cudaErrorUnsupportedLimit);
	*value = __atomic_load_n(&limits[limit], __ATOMIC_RELAXED);
	return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	ENTER_RUNTIME();
	if ((unsigned)limit >= LIMITS)
		return record_error(cudaErrorUnsupportedLimit);
	__atomic_store_n(&limits[limit], value, __ATOMIC_RELAXED);
	return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	ENTER_RUNTIME();
	if (least != NULL)
		*least = 0;
	if (greatest != NULL)
		*greatest = 0;
	return cudaSuccess;
}

/* ---- peers: the devices of a process share its address space ---- */

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	ENTER_RUNTIME();
	if (can == NULL)
		return record_error(cudaErrorInvalidValue);
	if (!is_device(device) || !is_device(peer))
		return record_error(cudaErrorInvalidDevice);
	*can = device != peer;
	return cudaSuccess;
}

static cudaError_t change_peer(int peer, bool enable)
{
	struct device *device = this_device();
	uint32_t bit = (uint32_t)1 << peer;
	cudaError_t error = cudaSuccess;

	pthread_mutex_lock(&device->lock);
	bool enabled = (device->peers & bit) != 0;
	if (enable && enabled)
		error = cudaErrorPeerAccessAlreadyEnabled;
	else if (!enable && !enabled)
		error = cudaErrorPeerAccessNotEnabled;
	else
		device->peers ^= bit;
	pthread_mutex_unlock(&device->lock);
	return error;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	ENTER_RUNTIME();
	if (!is_device(peer) || peer == current_device())
		return record_error(cudaErrorInvalidDevice);
	if (flags != 0)
		return record_error(cudaErrorInvalidValue);
	return record_error(change_peer(peer, true));
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
	ENTER_RUNTIME();
	if (!is_device(peer))
		return record_error(cudaErrorInvalidDevice);
	return record_error(change_peer(peer, false));
}

cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int device,
				      int peer)
{
	ENTER_RUNTIME();
	if (!is_device(device) || !is_device(peer) || device == peer)
		return record_error(cudaErrorInvalidDevice);
	if (value == NULL || attribute < cudaDevP2PAttrPerformanceRank ||
	    attribute > cudaDevP2PAttrCudaArrayAccessSupported)
		return record_error(cudaErrorInvalidValue);
	*value = attribute == cudaDevP2PAttrAccessSupported ||
		 attribute == cudaDevP2PAttrNativeAtomicSupported;
	return cudaSuccess;
}

/* What a NIC has written is in the memory that everybody reads. */
cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(int target, int scope)
{
	ENTER_RUNTIME();
	return cudaSuccess;
}
