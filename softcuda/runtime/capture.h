/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * capture.h - stream capture: what is asked of a stream becomes nodes of a graph instead of being
 * done
 *
 * A capture begins in one stream and spreads to others that wait for an event that was recorded in
 * it. Each stream of it has the set of nodes that its next node depends on. All of it is protected
 * by one lock; without any capture in the process the only cost is to read a counter.
 */
#ifndef SOFTCUDA_CAPTURE_H
#define SOFTCUDA_CAPTURE_H

#include <stdbool.h>

#include "softcuda/runtime/graph.h"

/*
 * What a capture knows of itself, as cudaStreamGetCaptureInfo reports it; valid until the next call
 * for the stream.
 */
struct capture_info {
	enum cudaStreamCaptureStatus status;
	unsigned long long id;
	struct graph *graph;
	const struct node_set *nodes;
};

cudaError_t begin_capture(struct stream *stream, enum cudaStreamCaptureMode mode);
/* *graph: NULL unless the capture succeeded. */
cudaError_t end_capture(struct stream *stream, struct graph **graph);
struct capture_info query_capture(struct stream *stream);
cudaError_t change_capture_nodes(struct stream *stream, struct graph_node **nodes, size_t count,
				 unsigned flags);

/*
 * Each says in *captured whether the stream is captured; if not, nothing was done. capture_wait
 * also makes a stream that was not captured part of the capture that the event was recorded in.
 */
cudaError_t capture_operation(struct stream *stream, struct operation *operation, bool *captured);
cudaError_t capture_record(struct stream *stream, struct event *event, unsigned flags,
			   bool *captured);
cudaError_t capture_wait(struct stream *stream, struct event *event, unsigned flags,
			 bool *captured);

/* cudaErrorStreamCaptureUnsupported, and the capture is lost, if the stream is captured. */
cudaError_t refuse_in_capture(struct stream *stream);
/* cudaErrorCapturedEvent if the event was last recorded in a capture. */
cudaError_t refuse_captured_event(struct event *event);
/*
 * A call that a capture may forbid to this thread, by its mode: allocation, and whatever waits for
 * the device.
 */
cudaError_t refuse_unsafe_call(void);
/* A stream is about to be destroyed: it leaves its capture, which is lost if it began there. */
void leave_capture(struct stream *stream);

enum cudaStreamCaptureMode exchange_thread_mode(enum cudaStreamCaptureMode mode);

#endif
