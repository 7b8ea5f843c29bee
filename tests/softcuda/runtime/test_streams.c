/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events: what is ordered, what is not, and what a wait means. */
#include "tests/softcuda/runtime/support.h"

#include <stdatomic.h>
#include <unistd.h>

/* As programs call them that were compiled with --default-stream per-thread. */
cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void *data);
cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream);
cudaError_t cudaMemset_ptds(void *pointer, int value, size_t size);

static _Atomic int next_place;

static void take_place(void *data)
{
	*(_Atomic int *)data = ++next_place;
}

static void set_flag(void *data)
{
	*(_Atomic int *)data = 1;
}

/* ---- one stream ---- */

static void in_order(void)
{
	cudaStream_t stream;
	_Atomic int places[100] = { 0 };

	next_place = 0;
	OK(cudaStreamCreate(&stream));
	for (int i = 0; i < 100; i++)
		OK(cudaLaunchHostFunc(stream, take_place, (void *)&places[i]));
	OK(cudaStreamSynchronize(stream));
	for (int i = 0; i < 100; i++)
		CHECK_INT(places[i], i + 1);
	OK(cudaStreamQuery(stream));
	OK(cudaStreamDestroy(stream));
}

static void not_ready_until_done(void)
{
	cudaStream_t stream;
	cudaEvent_t event;
	struct gate gate;

	make_gate(&gate);
	OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	OK(cudaEventQuery(event)); /* never recorded */
	OK(cudaEventSynchronize(event));
	close_gate(&gate, stream);
	OK(cudaEventRecord(event, stream));
	FAILS(cudaStreamQuery(stream), cudaErrorNotReady);
	FAILS(cudaEventQuery(event), cudaErrorNotReady);
	open_gate(&gate);
	OK(cudaEventSynchronize(event));
	OK(cudaEventQuery(event));
	OK(cudaStreamSynchronize(stream));
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(stream));
}

/* What was asked for is still done after the stream was destroyed. */
static void destroyed_with_work(void)
{
	cudaStream_t stream;
	struct gate gate;
	_Atomic int done = 0;

	make_gate(&gate);
	OK(cudaStreamCreate(&stream));
	close_gate(&gate, stream);
	OK(cudaLaunchHostFunc(stream, set_flag, (void *)&done));
	OK(cudaStreamDestroy(stream));
	FAILS(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
	FAILS(cudaStreamDestroy(stream), cudaErrorInvalidResourceHandle);
	CHECK_INT(done, 0);
	open_gate(&gate);
	OK(cudaDeviceSynchronize());
	CHECK_INT(done, 1);
}

/* ---- several streams ---- */

static void streams_are_independent(void)
{
	cudaStream_t held, other;
	struct gate gate;
	_Atomic int done = 0;

	make_gate(&gate);
	OK(cudaStreamCreate(&held));
	OK(cudaStreamCreate(&other));
	close_gate(&gate, held);
	OK(cudaLaunchHostFunc(other, set_flag, (void *)&done));
	OK(cudaStreamSynchronize(other));
	CHECK_INT(done, 1);
	open_gate(&gate);
	OK(cudaStreamSynchronize(held));
	OK(cudaStreamDestroy(held));
	OK(cudaStreamDestroy(other));
}

static void waits_for_event(void)
{
	cudaStream_t first, second;
	cudaEvent_t event;
	struct gate gate;
	_Atomic int places[2] = { 0 };

	next_place = 0;
	make_gate(&gate);
	OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	OK(cudaEventCreate(&event));
	close_gate(&gate, first);
	OK(cudaLaunchHostFunc(first, take_place, (void *)&places[0]));
	OK(cudaEventRecord(event, first));
	OK(cudaStreamWaitEvent(second, event, 0));
	OK(cudaLaunchHostFunc(second, take_place, (void *)&places[1]));
	FAILS(cudaStreamQuery(second), cudaErrorNotReady);
	open_gate(&gate);
	OK(cudaStreamSynchronize(second));
	CHECK_INT(places[0], 1);
	CHECK_INT(places[1], 2);
	OK(cudaEventDestroy(event));
	OK(cudaStreamDestroy(first));
	OK(cudaStreamDestroy(second));
}

/* A wait means the record before it, whatever is recorded later, and even if the event is gone. */
static void wait_means_last_record(void)
{
	cudaStream_t held, other, waiter;
	cudaEvent_t event;
	struct gate gate;
	_Atomic int done = 0;

	make_gate(&gate);
	OK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&waiter, cudaStreamNonBlocking));
	OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	/* Recorded first where nothing is ready, then where everything is: the wait is for the
	 * second. */
	close_gate(&gate, held);
	OK(cudaEventRecord(event, held));
	OK(cudaEventRecord(event, other));
	OK(cudaEventQuery(event));
	OK(cudaStreamWaitEvent(waiter, event, 0));
	OK(cudaLaunchHostFunc(waiter, set_flag, (void *)&done));
	OK(cudaStreamSynchronize(waiter));
	CHECK_INT(done, 1);
	/* And the other way round: a wait for the first is not satisfied by the second. */
	done = 0;
	OK(cudaEventRecord(event, held));
	OK(cudaStreamWaitEvent(waiter, event, 0));
	OK(cudaEventRecord(event, other));
	OK(cudaEventDestroy(event));
	OK(cudaLaunchHostFunc(waiter, set_flag, (void *)&done));
	FAILS(cudaStreamQuery(waiter), cudaErrorNotReady);
	CHECK_INT(done, 0);
	open_gate(&gate);
	OK(cudaStreamSynchronize(waiter));
	CHECK_INT(done, 1);
	OK(cudaStreamDestroy(held));
	OK(cudaStreamDestroy(other));
	OK(cudaStreamDestroy(waiter));
}

/* ---- the legacy stream ---- */

static void legacy_waits_for_blocking(cudaStream_t legacy)
{
	cudaStream_t blocking, nonblocking;
	struct gate gate, other;
	_Atomic int places[3] = { 0 };

	next_place = 0;
	make_gate(&gate);
	make_gate(&other);
	OK(cudaStreamCreate(&blocking));
	OK(cudaStreamCreateWithFlags(&nonblocking, cudaStreamNonBlocking));
	close_gate(&other, nonblocking);
	close_gate(&gate, blocking);
	OK(cudaLaunchHostFunc(blocking, take_place, (void *)&places[0]));
	OK(cudaLaunchHostFunc(legacy, take_place, (void *)&places[1]));
	OK(cudaLaunchHostFunc(blocking, take_place, (void *)&places[2]));
	FAILS(cudaStreamQuery(legacy), cudaErrorNotReady);
	open_gate(&gate);
	OK(cudaStreamSynchronize(blocking));
	for (int i = 0; i < 3; i++)
		CHECK_INT(places[i], i + 1);
	FAILS(cudaStreamQuery(nonblocking), cudaErrorNotReady); /* nobody waited for it */
	open_gate(&other);
	OK(cudaStreamSynchronize(nonblocking));
	OK(cudaStreamDestroy(blocking));
	OK(cudaStreamDestroy(nonblocking));
}

static void *use_thread_stream(void *data)
{
	unsigned long long id = 0;
	OK(cudaStreamGetId(cudaStreamPerThread, &id));
	CHECK_INT(id, 2);
	OK(cudaLaunchHostFunc(cudaStreamPerThread, set_flag, data));
	OK(cudaStreamSynchronize(cudaStreamPerThread));
	*(_Atomic int *)data = 0;
	OK(cudaLaunchHostFunc_ptsz(NULL, set_flag, data));
	OK(cudaStreamSynchronize_ptsz(NULL));
	return NULL;
}

/* Each thread has its own; one that is held up holds no other one up. */
static void per_thread_streams(void)
{
	pthread_t thread;
	struct gate gate;
	_Atomic int done = 0;

	make_gate(&gate);
	close_gate(&gate, cudaStreamPerThread);
	CHECK(pthread_create(&thread, NULL, use_thread_stream, (void *)&done) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK_INT(done, 1);
	FAILS(cudaStreamQuery(cudaStreamPerThread), cudaErrorNotReady);
	FAILS(cudaStreamQuery_ptsz(NULL), cudaErrorNotReady);
	FAILS(cudaStreamQuery(NULL), cudaErrorNotReady); /* it is a blocking stream */
	open_gate(&gate);
	OK(cudaStreamSynchronize(cudaStreamPerThread));
	void *pointer;
	OK(cudaMalloc(&pointer, 1 << 20));
	OK(cudaMemset_ptds(pointer, 5, 1 << 20));
	CHECK(((char *)pointer)[(1 << 20) - 1] == 5);
	OK(cudaFree(pointer));
}

static void stream_attributes(void)
{
	cudaStream_t stream;
	unsigned long long id = 0, legacy = 0;
	unsigned flags = 77;
	int priority = 77, device = 77;

	OK(cudaStreamGetId(NULL, &id));
	OK(cudaStreamGetId(cudaStreamLegacy, &legacy));
	CHECK_INT(id, 1);
	CHECK_INT(legacy, 1);
	OK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -5));
	OK(cudaStreamGetId(stream, &id));
	CHECK(id > 2);
	OK(cudaStreamGetFlags(stream, &flags));
	CHECK_INT(flags, cudaStreamNonBlocking);
	OK(cudaStreamGetPriority(stream, &priority));
	CHECK_INT(priority, 0); /* the only one that cudaDeviceGetStreamPriorityRange names */
	OK(cudaStreamGetDevice(stream, &device));
	CHECK_INT(device, 0);
	OK(cudaStreamDestroy(stream));
	FAILS(cudaStreamCreateWithFlags(&stream, 8), cudaErrorInvalidValue);
	FAILS(cudaStreamCreate(NULL), cudaErrorInvalidValue);
	FAILS(cudaStreamSynchronize((cudaStream_t)0x1234), cudaErrorInvalidResourceHandle);
	FAILS(cudaEventQuery((cudaEvent_t)0x1234), cudaErrorInvalidResourceHandle);
}

/* ---- callbacks, time ---- */

static void check_callback(cudaStream_t stream, cudaError_t status, void *data)
{
	CHECK(stream == *(cudaStream_t *)data);
	CHECK_INT(status, cudaSuccess);
	next_place = 42;
}

/* From a stream's thread, whatever would wait is refused: it could wait for itself. */
static void refuse_waits(void *data)
{
	FAILS(cudaStreamSynchronize(data), cudaErrorNotPermitted);
	FAILS(cudaDeviceSynchronize(), cudaErrorNotPermitted);
	FAILS(cudaFree(data), cudaErrorNotPermitted);
	next_place = 43;
}

/* A thread that waits may execute the stream's tasks itself, and is afterwards what it was
 * before. */
static void waiting_thread_is_unchanged(void)
{
	cudaStream_t stream;
	int device = 77;

	OK(cudaSetDevice(1));
	OK(cudaStreamCreate(&stream));
	OK(cudaSetDevice(0));
	for (int i = 0; i < 1000; i++) {
		OK(cudaLaunchHostFunc(stream, refuse_waits, stream));
		OK(cudaStreamSynchronize(stream));
		OK(cudaGetDevice(&device));
		CHECK_INT(device, 0);
	}
	OK(cudaDeviceSynchronize());
	OK(cudaStreamDestroy(stream));
}

static void host_callbacks(void)
{
	cudaStream_t stream;

	OK(cudaStreamCreate(&stream));
	OK(cudaStreamAddCallback(stream, check_callback, &stream, 0));
	OK(cudaStreamSynchronize(stream));
	CHECK_INT(next_place, 42);
	OK(cudaLaunchHostFunc(stream, refuse_waits, stream));
	OK(cudaStreamSynchronize(stream));
	CHECK_INT(next_place, 43);
	FAILS(cudaLaunchHostFunc(stream, NULL, NULL), cudaErrorInvalidValue);
	OK(cudaStreamDestroy(stream));
}

static void sleep_20_ms(void *data)
{
	usleep(20000);
}

static void elapsed_time(void)
{
	cudaStream_t stream;
	cudaEvent_t start, end, untimed;
	struct gate gate;
	float milliseconds = -1;

	make_gate(&gate);
	OK(cudaStreamCreate(&stream));
	OK(cudaEventCreate(&start));
	OK(cudaEventCreate(&end));
	OK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming));
	FAILS(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
	OK(cudaEventRecord(start, stream));
	OK(cudaLaunchHostFunc(stream, sleep_20_ms, NULL));
	close_gate(&gate, stream);
	OK(cudaEventRecord(end, stream));
	FAILS(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorNotReady);
	open_gate(&gate);
	OK(cudaEventSynchronize(end));
	OK(cudaEventElapsedTime(&milliseconds, start, end));
	CHECK(milliseconds >= 20);
	OK(cudaEventElapsedTime(&milliseconds, end, start));
	CHECK(milliseconds <= -20);
	OK(cudaEventRecord(untimed, stream));
	OK(cudaEventSynchronize(untimed));
	FAILS(cudaEventElapsedTime(&milliseconds, start, untimed), cudaErrorInvalidResourceHandle);
	FAILS(cudaEventCreateWithFlags(&end, cudaEventInterprocess | cudaEventDisableTiming),
	      cudaErrorNotSupported);
	OK(cudaEventDestroy(start));
	OK(cudaEventDestroy(end));
	OK(cudaEventDestroy(untimed));
	OK(cudaStreamDestroy(stream));
}

/* ---- many threads at once ---- */

struct crowd {
	cudaStream_t shared;
	_Atomic long counted;
};

static void count_call(void *data)
{
	((struct crowd *)data)->counted++;
}

static void *use_streams(void *data)
{
	struct crowd *crowd = data;

	for (int i = 0; i < 200; i++) {
		cudaStream_t own;
		cudaEvent_t event;
		OK(cudaStreamCreateWithFlags(&own, i % 2 == 0 ? cudaStreamNonBlocking
							      : cudaStreamDefault));
		OK(cudaEventCreateWithFlags(&event, i % 3 == 0 ? cudaEventDisableTiming
							       : cudaEventDefault));
		OK(cudaLaunchHostFunc(own, count_call, crowd));
		OK(cudaEventRecord(event, own));
		OK(cudaStreamWaitEvent(crowd->shared, event, 0));
		OK(cudaLaunchHostFunc(crowd->shared, count_call, crowd));
		if (i % 8 == 0)
			OK(cudaLaunchHostFunc(NULL, count_call, crowd));
		OK(cudaEventDestroy(event));
		if (i % 4 == 0)
			OK(cudaStreamSynchronize(own));
		if (i % 16 == 1)
			/* all threads may execute its tasks */
			OK(cudaStreamSynchronize(crowd->shared));
		OK(cudaStreamDestroy(own));
	}
	return NULL;
}

static void many_threads(void)
{
	struct crowd crowd = { 0 };
	pthread_t threads[4];

	OK(cudaStreamCreate(&crowd.shared));
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, use_streams, &crowd) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	OK(cudaDeviceSynchronize());
	CHECK_INT(crowd.counted, 4 * (200 + 200 + 25));
	OK(cudaStreamDestroy(crowd.shared));
}

int main(void)
{
	in_order();
	not_ready_until_done();
	destroyed_with_work();
	streams_are_independent();
	waits_for_event();
	wait_means_last_record();
	legacy_waits_for_blocking(NULL);
	legacy_waits_for_blocking(cudaStreamLegacy);
	per_thread_streams();
	stream_attributes();
	host_callbacks();
	waiting_thread_is_unchanged();
	elapsed_time();
	many_threads();
	return 0;
}
