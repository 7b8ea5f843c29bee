/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture and graphs, with NCCL's own ways of using them among the uses. */
#include "tests/softcuda/runtime/support.h"

#include <stdatomic.h>

static _Atomic int calls;
static _Atomic int destroyed;

static void count_call(void *data)
{
	calls++;
}

static void destroy_object(void *data)
{
	CHECK(data == &destroyed);
	destroyed++;
}

static cudaGraphExec_t instantiate_graph(cudaGraph_t graph)
{
	cudaGraphExec_t exec;
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	return exec;
}

static size_t count_nodes(cudaGraph_t graph)
{
	size_t count = 0;
	OK(cudaGraphGetNodes(graph, NULL, &count));
	return count;
}

/* ---- one stream ---- */

static void captured_work_is_done_by_launches(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	void *device, *host;

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&device, 1000));
	OK(cudaHostAlloc(&host, 1000, 0));
	OK(cudaMemset(device, 0, 1000));
	calls = 0;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaMemsetAsync(device, 5, 1000, stream));
	OK(cudaMemcpyAsync(host, device, 1000, cudaMemcpyDeviceToHost, stream));
	OK(cudaLaunchHostFunc(stream, count_call, NULL));
	OK(cudaStreamEndCapture(stream, &graph));
	CHECK_INT(count_nodes(graph), 3);
	CHECK(((char *)device)[0] == 0); /* nothing has been done yet */
	cudaGraphExec_t exec = instantiate_graph(graph);
	for (int i = 1; i <= 3; i++) {
		((char *)host)[999] = 0;
		OK(cudaGraphLaunch(exec, stream));
		OK(cudaStreamSynchronize(stream));
		CHECK(((char *)host)[999] == 5);
		CHECK_INT(calls, i);
	}
	OK(cudaGraphExecDestroy(exec));
	FAILS(cudaGraphLaunch(exec, stream), cudaErrorInvalidResourceHandle);
	OK(cudaFreeHost(host));
	OK(cudaFree(device));
	OK(cudaStreamDestroy(stream));
}

/* A node reads pageable memory when it is launched. */
static void pageable_source(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	void *device;
	char source = 1;

	OK(cudaStreamCreate(&stream));
	OK(cudaMalloc(&device, 1));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	OK(cudaMemcpyAsync(device, &source, 1, cudaMemcpyHostToDevice, stream));
	OK(cudaStreamEndCapture(stream, &graph));
	cudaGraphExec_t exec = instantiate_graph(graph);
	source = 2;
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(*(char *)device == 2);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaFree(device));
	OK(cudaStreamDestroy(stream));
}

/* ---- several streams ---- */

struct meeting {
	sem_t here, there;
};

static void meet_one(void *data)
{
	struct meeting *meeting = data;
	sem_post(&meeting->here);
	wait_semaphore(&meeting->there);
}

static void meet_other(void *data)
{
	struct meeting *meeting = data;
	sem_post(&meeting->there);
	wait_semaphore(&meeting->here);
}

/* Branches of a graph run at the same time: here each waits for the other, as kernels of two ranks
 * do. */
static void branches_meet(void)
{
	cudaStream_t origin, branch;
	cudaEvent_t fork_event, join_event;
	cudaGraph_t graph;
	struct meeting meeting;

	CHECK(sem_init(&meeting.here, 0, 0) == 0 && sem_init(&meeting.there, 0, 0) == 0);
	OK(cudaStreamCreate(&origin));
	OK(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
	OK(cudaEventCreate(&fork_event));
	OK(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
	calls = 0;
	OK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
	OK(cudaEventRecord(fork_event, origin));
	OK(cudaStreamWaitEvent(branch, fork_event, 0));
	OK(cudaLaunchHostFunc(origin, meet_one, &meeting));
	OK(cudaLaunchHostFunc(branch, meet_other, &meeting));
	OK(cudaEventRecord(join_event, branch));
	OK(cudaStreamWaitEvent(origin, join_event, 0));
	OK(cudaLaunchHostFunc(origin, count_call, NULL));
	OK(cudaStreamEndCapture(origin, &graph));
	CHECK_INT(count_nodes(graph), 3);
	cudaGraphExec_t exec = instantiate_graph(graph);
	for (int i = 0; i < 3; i++)
		OK(cudaGraphLaunch(
			exec,
			i == 1 ? branch : origin)); /* launches of one instance follow each other */
	OK(cudaDeviceSynchronize());
	CHECK_INT(calls, 3);
	OK(cudaGraphExecDestroy(exec));
	FAILS(cudaEventQuery(join_event), cudaErrorCapturedEvent);
	FAILS(cudaEventSynchronize(join_event), cudaErrorCapturedEvent);
	OK(cudaEventRecord(join_event, branch)); /* and is an ordinary one again */
	OK(cudaEventSynchronize(join_event));
	OK(cudaEventDestroy(fork_event));
	OK(cudaEventDestroy(join_event));
	OK(cudaStreamDestroy(origin));
	OK(cudaStreamDestroy(branch));
}

/* A launch comes after what its stream was asked for, and what is asked for later comes after the
 * launch. */
static void launch_is_in_order(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	struct gate gate;

	make_gate(&gate);
	OK(cudaStreamCreate(&stream));
	calls = 0;
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
	OK(cudaLaunchHostFunc(stream, count_call, NULL));
	OK(cudaStreamEndCapture(stream, &graph));
	cudaGraphExec_t exec = instantiate_graph(graph);
	close_gate(&gate, stream);
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphExecDestroy(exec)); /* what was launched is still done */
	wait_semaphore(&gate.reached);
	CHECK_INT(calls, 0);
	open_gate(&gate);
	OK(cudaStreamSynchronize(stream));
	CHECK_INT(calls, 1);
	OK(cudaStreamDestroy(stream));
}

/* ---- what NCCL does ---- */

/* Objects of the program live as long as the graph and its instances, and launches that still
 * run. */
static void user_objects(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaUserObject_t object;
	struct gate gate;

	make_gate(&gate);
	destroyed = 0;
	OK(cudaStreamCreate(&stream));
	OK(cudaUserObjectCreate(&object, (void *)&destroyed, destroy_object, 1,
				cudaUserObjectNoDestructorSync));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	OK(cudaLaunchHostFunc(stream, count_call, NULL));
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove));
	OK(cudaGraphInstantiate(&exec, graph, 0));
	OK(cudaGraphDestroy(graph));
	CHECK_INT(destroyed, 0);
	close_gate(&gate, stream);
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaGraphExecDestroy(exec));
	CHECK_INT(destroyed, 0);
	open_gate(&gate);
	OK(cudaStreamSynchronize(stream));
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < 6000 && destroyed == 0;
	     i++) { /* the last task is freed after it is reported done */
		struct timespec nap = { .tv_nsec = 10000000 };
		nanosleep(&nap, NULL);
	}
	CHECK_INT(destroyed, 1);
	/* References that the program keeps count by themselves. */
	OK(cudaUserObjectCreate(&object, (void *)&destroyed, destroy_object, 2,
				cudaUserObjectNoDestructorSync));
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphRetainUserObject(graph, object, 3, 0));
	OK(cudaUserObjectRelease(object, 2));
	OK(cudaGraphReleaseUserObject(graph, object, 2));
	FAILS(cudaGraphReleaseUserObject(graph, object, 2), cudaErrorInvalidValue);
	CHECK_INT(destroyed, 1);
	OK(cudaGraphDestroy(graph));
	CHECK_INT(destroyed, 2);
	FAILS(cudaUserObjectRelease(object, 1), cudaErrorInvalidValue);
	OK(cudaStreamDestroy(stream));
}

/* The graph records the event, for which another stream waits. */
static void launch_with_event(cudaGraph_t graph, cudaStream_t stream, cudaStream_t other,
			      cudaEvent_t event)
{
	cudaGraphExec_t exec = instantiate_graph(graph);

	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamWaitEvent(other, event, 0));
	OK(cudaStreamSynchronize(other));
	CHECK(calls >= 1);
	OK(cudaStreamSynchronize(stream));
	CHECK_INT(calls, 3);
	OK(cudaEventQuery(event));
	OK(cudaGraphExecDestroy(exec));
}

/* A stream is brought into the capture without dependencies, used, joined, and given a node of the
 * program's own. */
static void side_stream(void)
{
	cudaStream_t origin, side;
	cudaEvent_t scratch, serial;
	cudaGraph_t graph, current;
	cudaGraphNode_t record;
	const cudaGraphNode_t *nodes;
	const cudaGraphEdgeData *edges;
	enum cudaStreamCaptureStatus status;
	unsigned long long id = 0, other = 0;
	size_t count = 77;

	OK(cudaStreamCreate(&origin));
	OK(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&scratch, cudaEventDisableTiming));
	OK(cudaEventCreateWithFlags(&serial, cudaEventDisableTiming));
	OK(cudaStreamGetCaptureInfo_v2(origin, &status, &id, &current, &nodes, &count));
	/* nothing but the status is written */
	CHECK(status == cudaStreamCaptureStatusNone && id == 0 && count == 77);
	calls = 0;
	OK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
	OK(cudaLaunchHostFunc(origin, count_call, NULL));
	OK(cudaEventRecord(scratch, origin));
	OK(cudaStreamWaitEvent(side, scratch, 0));
	OK(cudaStreamGetCaptureInfo_v2(origin, &status, &id, &current, &nodes, &count));
	CHECK(status == cudaStreamCaptureStatusActive && count == 1);
	OK(cudaStreamUpdateCaptureDependencies(side, NULL, 0, cudaStreamSetCaptureDependencies));
	OK(cudaStreamGetCaptureInfo_v3(side, &status, &other, NULL, &nodes, &edges, &count));
	CHECK(status == cudaStreamCaptureStatusActive && other == id && count == 0);
	OK(cudaStreamWaitEvent(side, serial, cudaEventWaitExternal));
	OK(cudaLaunchHostFunc(side, count_call, NULL));
	OK(cudaEventRecord(scratch, side));
	OK(cudaStreamWaitEvent(origin, scratch, 0));
	OK(cudaGraphAddEventRecordNode(&record, current, NULL, 0, serial));
	OK(cudaStreamGetCaptureInfo_v2(side, &status, NULL, NULL, &nodes, &count));
	for (size_t i = 0; i < count; i++)
		OK(cudaGraphAddDependencies(current, &nodes[i], &record, 1));
	OK(cudaStreamUpdateCaptureDependencies(side, &record, 1, cudaStreamSetCaptureDependencies));
	OK(cudaLaunchHostFunc(origin, count_call, NULL));
	OK(cudaStreamEndCapture(origin, &graph));
	CHECK(graph == current);
	CHECK_INT(count_nodes(graph), 5);
	OK(cudaStreamIsCapturing(side, &status));
	CHECK_INT(status, cudaStreamCaptureStatusNone);
	launch_with_event(graph, origin, side, serial);
	OK(cudaEventDestroy(scratch));
	OK(cudaEventDestroy(serial));
	OK(cudaStreamDestroy(origin));
	OK(cudaStreamDestroy(side));
}

/* A temporary stream learns an event's nodes, gives them to another stream, and is destroyed while
 * captured. */
static void temporary_stream(void)
{
	cudaStream_t origin, tail, temporary;
	cudaEvent_t event;
	cudaGraph_t graph;
	const cudaGraphNode_t *nodes;
	enum cudaStreamCaptureStatus status;
	size_t count = 0;

	OK(cudaStreamCreate(&origin));
	OK(cudaStreamCreateWithFlags(&tail, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&temporary, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	OK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeGlobal));
	OK(cudaEventRecord(event, origin));
	OK(cudaStreamWaitEvent(tail, event, 0));
	OK(cudaLaunchHostFunc(origin, count_call, NULL));
	OK(cudaEventRecord(event, origin));
	OK(cudaStreamWaitEvent(temporary, event, 0));
	OK(cudaStreamGetCaptureInfo_v2(temporary, &status, NULL, NULL, &nodes, &count));
	CHECK_INT(count, 1);
	OK(cudaStreamUpdateCaptureDependencies(tail, (cudaGraphNode_t *)nodes, count,
					       cudaStreamSetCaptureDependencies));
	OK(cudaStreamDestroy(temporary));
	OK(cudaStreamEndCapture(origin, &graph));
	OK(cudaGraphDestroy(graph));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(origin));
	OK(cudaStreamDestroy(tail));
}

/* ---- graphs without capture ---- */

static void built_by_hand(void)
{
	cudaGraph_t graph;
	cudaGraphNode_t fill, copy, call, empty, found[4];
	cudaStream_t stream;
	void *device, *target;
	size_t count = 4;
	enum cudaGraphNodeType type;

	OK(cudaMalloc(&device, 64));
	OK(cudaMalloc(&target, 64));
	OK(cudaStreamCreate(&stream));
	struct cudaMemsetParams fill_parameters = {
		.dst = device, .value = 0x01020304, .elementSize = 4, .width = 16, .height = 1
	};
	struct cudaHostNodeParams call_parameters = { .fn = count_call };
	calls = 0;
	OK(cudaGraphCreate(&graph, 0));
	OK(cudaGraphAddMemcpyNode1D(&copy, graph, NULL, 0, target, device, 64,
				    cudaMemcpyDeviceToDevice));
	OK(cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &fill_parameters));
	OK(cudaGraphAddDependencies(graph, &fill, &copy, 1)); /* against the order of creation */
	OK(cudaGraphAddHostNode(&call, graph, &copy, 1, &call_parameters));
	OK(cudaGraphAddEmptyNode(&empty, graph, (cudaGraphNode_t[]) { copy, call }, 2));
	OK(cudaGraphGetRootNodes(graph, found, &count));
	CHECK(count == 1 && found[0] == fill && found[1] == NULL);
	count = 1;
	OK(cudaGraphNodeGetDependencies(empty, NULL, &count));
	CHECK_INT(count, 2);
	OK(cudaGraphNodeGetType(copy, &type));
	CHECK_INT(type, cudaGraphNodeTypeMemcpy);
	cudaGraphExec_t exec;
	OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cudaGraphLaunch(exec, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK(((unsigned *)target)[15] == 0x01020304);
	CHECK_INT(calls, 1);
	OK(cudaGraphExecDestroy(exec));
	OK(cudaGraphAddDependencies(graph, &empty, &fill, 1)); /* a cycle */
	FAILS(cudaGraphInstantiate(&exec, graph, 0), cudaErrorInvalidValue);
	OK(cudaGraphDestroy(graph));
	FAILS(cudaGraphDestroy(graph), cudaErrorInvalidResourceHandle);
	OK(cudaFree(device));
	OK(cudaFree(target));
	OK(cudaStreamDestroy(stream));
}

/* ---- what a capture does not allow ---- */

static void begin_capture(cudaStream_t stream)
{
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
}

/* What was done to it has made a capture invalid. */
static void capture_is_lost(cudaStream_t stream)
{
	cudaGraph_t graph = (cudaGraph_t)1;

	FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	CHECK(graph == NULL);
}

static void wait_in_capture(cudaStream_t stream)
{
	enum cudaStreamCaptureStatus status;

	begin_capture(stream);
	FAILS(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
	FAILS(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
	OK(cudaStreamIsCapturing(stream, &status));
	CHECK_INT(status, cudaStreamCaptureStatusInvalidated);
	FAILS(cudaLaunchHostFunc(stream, count_call, NULL), cudaErrorStreamCaptureInvalidated);
	capture_is_lost(stream);
}

/* Unless it is allowed. */
static void allocate_in_capture(cudaStream_t stream)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	void *pointer;

	begin_capture(stream);
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK_INT(mode, cudaStreamCaptureModeGlobal);
	OK(cudaMalloc(&pointer, 10));
	OK(cudaThreadExchangeStreamCaptureMode(&mode));
	FAILS(cudaFree(pointer), cudaErrorStreamCaptureUnsupported);
	capture_is_lost(stream);
	OK(cudaFree(pointer));
}

/* The legacy stream, work outside of the capture, and another capture. */
static void mix_with_capture(cudaStream_t stream, cudaStream_t other)
{
	cudaEvent_t event, outside;
	cudaGraph_t graph;

	OK(cudaEventCreate(&event));
	OK(cudaEventCreate(&outside));
	OK(cudaEventRecord(outside, other));
	begin_capture(stream);
	FAILS(cudaLaunchHostFunc(NULL, count_call, NULL), cudaErrorStreamCaptureImplicit);
	capture_is_lost(stream);

	begin_capture(stream);
	FAILS(cudaStreamWaitEvent(stream, outside, 0), cudaErrorStreamCaptureIsolation);
	capture_is_lost(stream);

	begin_capture(stream);
	begin_capture(other);
	OK(cudaEventRecord(event, other));
	FAILS(cudaStreamWaitEvent(stream, event, 0), cudaErrorStreamCaptureMerge);
	capture_is_lost(stream);
	OK(cudaStreamEndCapture(other, &graph));
	OK(cudaGraphDestroy(graph));
	OK(cudaEventDestroy(event));
	OK(cudaEventDestroy(outside));
}

/* The other stream is part of the capture from here on. */
static void bring_in(cudaStream_t stream, cudaStream_t other, cudaEvent_t event)
{
	begin_capture(stream);
	OK(cudaEventRecord(event, stream));
	OK(cudaStreamWaitEvent(other, event, 0));
}

/* A capture whose stream goes is gone. */
static void destroy_in_capture(cudaStream_t stream, cudaStream_t other, cudaEvent_t event)
{
	enum cudaStreamCaptureStatus status;

	bring_in(stream, other, event);
	OK(cudaStreamDestroy(stream));
	OK(cudaStreamIsCapturing(other, &status));
	CHECK_INT(status, cudaStreamCaptureStatusNone);
	OK(cudaStreamSynchronize(other));
	FAILS(cudaStreamWaitEvent(other, event, 0), cudaErrorCapturedEvent);
}

static void lost_captures(void)
{
	cudaStream_t stream, other;
	cudaEvent_t event;
	cudaGraph_t graph;

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamCreate(&other));
	OK(cudaEventCreate(&event));
	FAILS(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
	      cudaErrorStreamCaptureUnsupported);
	FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
	wait_in_capture(stream);
	allocate_in_capture(stream);
	mix_with_capture(stream, other);

	bring_in(stream, other, event); /* everything must be joined */
	OK(cudaLaunchHostFunc(other, count_call, NULL));
	FAILS(cudaStreamEndCapture(other, &graph), cudaErrorStreamCaptureUnmatched);
	FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureUnjoined);
	destroy_in_capture(stream, other, event);
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(other));
}

static void *end_in_thread(void *data)
{
	cudaGraph_t graph;
	FAILS(cudaStreamEndCapture(data, &graph), cudaErrorStreamCaptureWrongThread);
	return NULL;
}

static void *allocate_in_thread(void *data)
{
	void *pointer;
	CHECK_INT(cudaMalloc(&pointer, 10), *(cudaError_t *)data);
	return NULL;
}

static void run_thread(void *(*function)(void *), void *data)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, function, data) == 0 &&
	      pthread_join(thread, NULL) == 0);
}

/* What a capture forbids to other threads. */
static void capture_and_other_threads(void)
{
	cudaStream_t stream;
	cudaGraph_t graph;
	cudaError_t allowed = cudaSuccess, forbidden = cudaErrorStreamCaptureUnsupported;

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	run_thread(end_in_thread, stream);
	run_thread(allocate_in_thread, &allowed);
	OK(cudaStreamEndCapture(stream, &graph));
	OK(cudaGraphDestroy(graph));
	OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	run_thread(allocate_in_thread, &forbidden);
	FAILS(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
	OK(cudaStreamDestroy(stream));
}

int main(void)
{
	captured_work_is_done_by_launches();
	pageable_source();
	branches_meet();
	launch_is_in_order();
	user_objects();
	side_stream();
	temporary_stream();
	built_by_hand();
	lost_captures();
	capture_and_other_threads();
	return 0;
}
