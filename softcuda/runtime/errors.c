/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/errors.h"

static _Thread_local cudaError_t thread_error;

cudaError_t record_error(cudaError_t error)
{
	if (error != cudaSuccess)
		thread_error = error;
	return error;
}

cudaError_t last_error(int take)
{
	cudaError_t error = thread_error;
	if (take)
		thread_error = cudaSuccess;
	return error;
}

struct error_text {
	cudaError_t error;
	const char *name;
	const char *text;
};

#define ENTRY(error, text)          \
	{                           \
		error, #error, text \
	}

static const struct error_text known_errors[] = {
	ENTRY(cudaSuccess, "no error"),
	ENTRY(cudaErrorInvalidValue, "invalid argument"),
	ENTRY(cudaErrorMemoryAllocation, "out of memory"),
	ENTRY(cudaErrorInitializationError, "initialization error"),
	ENTRY(cudaErrorInvalidConfiguration, "invalid launch configuration"),
	ENTRY(cudaErrorInvalidPitchValue, "invalid pitch"),
	ENTRY(cudaErrorInvalidSymbol, "invalid device symbol"),
	ENTRY(cudaErrorInvalidDevicePointer, "invalid device pointer"),
	ENTRY(cudaErrorInvalidMemcpyDirection, "invalid copy direction"),
	ENTRY(cudaErrorMissingConfiguration, "no launch configuration was given"),
	ENTRY(cudaErrorInvalidDeviceFunction, "invalid device function"),
	ENTRY(cudaErrorNoDevice, "no CUDA device is visible"),
	ENTRY(cudaErrorInvalidDevice, "invalid device ordinal"),
	ENTRY(cudaErrorDeviceUninitialized, "invalid device context"),
	ENTRY(cudaErrorMapBufferObjectFailed, "memory could not be mapped"),
	ENTRY(cudaErrorAlreadyMapped, "already mapped"),
	ENTRY(cudaErrorNotMapped, "not mapped"),
	ENTRY(cudaErrorUnsupportedLimit, "unsupported limit"),
	ENTRY(cudaErrorPeerAccessUnsupported, "peer access is not supported between these devices"),
	ENTRY(cudaErrorOperatingSystem, "an operating system call failed"),
	ENTRY(cudaErrorInvalidResourceHandle, "invalid resource handle"),
	ENTRY(cudaErrorIllegalState, "the object is in a state that does not allow this"),
	ENTRY(cudaErrorLossyQuery, "the query would lose information"),
	ENTRY(cudaErrorSymbolNotFound, "named symbol not found"),
	ENTRY(cudaErrorNotReady, "not ready"),
	ENTRY(cudaErrorIllegalAddress, "illegal memory access"),
	ENTRY(cudaErrorLaunchOutOfResources, "too many resources requested for the launch"),
	ENTRY(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
	ENTRY(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
	ENTRY(cudaErrorHostMemoryAlreadyRegistered, "a part of the memory is already registered"),
	ENTRY(cudaErrorHostMemoryNotRegistered, "the memory is not registered"),
	ENTRY(cudaErrorLaunchFailure, "launch failure"),
	ENTRY(cudaErrorNotPermitted, "operation not permitted"),
	ENTRY(cudaErrorNotSupported, "operation not supported"),
	ENTRY(cudaErrorStreamCaptureUnsupported,
	      "operation not permitted while a stream is captured"),
	ENTRY(cudaErrorStreamCaptureInvalidated, "the capture failed because of an earlier error"),
	ENTRY(cudaErrorStreamCaptureMerge, "two separate captures would be merged"),
	ENTRY(cudaErrorStreamCaptureUnmatched, "the capture was not begun in this stream"),
	ENTRY(cudaErrorStreamCaptureUnjoined,
	      "the capture has work that was not joined to its first stream"),
	ENTRY(cudaErrorStreamCaptureIsolation, "the capture would depend on uncaptured work"),
	ENTRY(cudaErrorStreamCaptureImplicit, "the capture would depend on the legacy stream"),
	ENTRY(cudaErrorCapturedEvent,
	      "operation not permitted on an event that was last recorded in a capture"),
	ENTRY(cudaErrorStreamCaptureWrongThread, "the capture was begun by another thread"),
	ENTRY(cudaErrorGraphExecUpdateFailure, "the graph execution could not be updated"),
	ENTRY(cudaErrorUnknown, "unknown error"),
};

static const struct error_text *find_error(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(known_errors) / sizeof(known_errors[0]); i++)
		if (known_errors[i].error == error)
			return &known_errors[i];
	return NULL;
}

const char *find_error_name(cudaError_t error)
{
	const struct error_text *found = find_error(error);
	return found == NULL ? "unrecognized error code" : found->name;
}

const char *find_error_text(cudaError_t error)
{
	const struct error_text *found = find_error(error);
	return found == NULL ? "unrecognized error code" : found->text;
}
