/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * submit.h - the way of an operation from the API to a stream
 */
#ifndef SOFTCUDA_SUBMIT_H
#define SOFTCUDA_SUBMIT_H

#include "softcuda/runtime/stream.h"

/*
 * Hand `operation` to `stream`. Takes over the caller's reference, also on failure; NULL: no
 * memory.
 */
cudaError_t submit_operation(struct stream *stream, struct operation *operation);
/*
 * Record an event, or wait for one, by handles; flags as cudaEventRecordWithFlags and
 * cudaStreamWaitEvent take them.
 */
cudaError_t request_record(cudaEvent_t event, cudaStream_t handle, unsigned flags);
cudaError_t request_wait(cudaStream_t handle, cudaEvent_t event, unsigned flags);
/*
 * Wait until all that `stream` was asked for is done. Refused on a worker thread, where it could
 * wait for itself.
 */
cudaError_t synchronize_stream(struct stream *stream);

#endif
