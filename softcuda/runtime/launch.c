/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/launch.h"

#include "softcuda/runtime/device.h"
#include "softcuda/runtime/submit.h"

cudaError_t launch_kernel(struct kernel_entry *entry, struct launch_shape *shape, void **pointers,
			  void **extra, cudaStream_t handle)
{
	struct stream *stream;
	struct operation *operation;
	cudaError_t error = find_stream(handle, &stream);
	if (error != cudaSuccess)
		return error;
	shape->device = stream->device->ordinal;
	error = create_launch(entry, shape, pointers, extra, &operation);
	if (error != cudaSuccess)
		return error;
	return submit_operation(stream, operation);
}

/*
 * A launch is complete, at the earliest, when its blocks run; here, when they have run. Other
 * attributes are hints.
 */
cudaError_t record_launch_events(const CUlaunchAttribute *attributes, unsigned count,
				 cudaStream_t handle)
{
	for (unsigned i = 0; i < count; i++) {
		if (attributes[i].id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			continue;
		cudaError_t error =
			request_record(attributes[i].value.launchCompletionEvent.event, handle, 0);
		if (error != cudaSuccess)
			return error;
	}
	return cudaSuccess;
}
