/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/device.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/report.h"
#include "softcuda/runtime/handles.h"
#include "softcuda/runtime/process.h"

static struct device devices[MACHINE_DEVICES_MAX];
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

/* Per-thread default streams of one thread, by device. They end with the thread. */
struct thread_streams {
	struct stream *stream[MACHINE_DEVICES_MAX];
};
static pthread_key_t thread_key;

static void close_thread_streams(void *value)
{
	struct thread_streams *streams = value;
	for (unsigned i = 0; i < MACHINE_DEVICES_MAX; i++)
		if (streams->stream[i] != NULL)
			close_stream(streams->stream[i]);
	free(streams);
}

static void make_devices(void)
{
	pthread_key_create(&thread_key, close_thread_streams);
	for (unsigned i = 0; i < MACHINE_DEVICES_MAX; i++) {
		devices[i].ordinal = (int)i;
		if (i < count_devices())
			devices[i].number = find_device_number(i);
		pthread_mutex_init(&devices[i].lock, NULL);
		LIST_INIT(&devices[i].streams);
	}
}

struct device *find_device(int ordinal)
{
	pthread_once(&devices_once, make_devices);
	return &devices[ordinal];
}

struct device *this_device(void)
{
	return find_device(current_device());
}

struct arena *device_arena(struct device *device)
{
	pthread_mutex_lock(&device->lock);
	if (device->arena == NULL) {
		char name[32];
		snprintf(name, sizeof(name), "softcuda-gpu%u", device->number);
		device->arena = create_arena(name, this_machine()->memory);
		if (device->arena == NULL)
			report_problem("no address space for %llu MiB of GPU %u: %s; set "
				       "SOFTCUDA_MEMORY to less",
				       (unsigned long long)this_machine()->memory >> 20,
				       device->number, strerror(errno));
	}
	struct arena *arena = device->arena;
	pthread_mutex_unlock(&device->lock);
	return arena;
}

static cudaError_t find_legacy_stream(struct device *device, struct stream **stream)
{
	cudaError_t error = cudaSuccess;

	*stream = atomic_load_explicit(&device->legacy, memory_order_acquire);
	if (*stream != NULL)
		return cudaSuccess;
	pthread_mutex_lock(&device->lock);
	*stream = atomic_load_explicit(&device->legacy, memory_order_relaxed);
	if (*stream == NULL)
		error = create_stream(device, STREAM_LEGACY, 0, stream);
	if (error == cudaSuccess)
		atomic_store_explicit(&device->legacy, *stream, memory_order_release);
	pthread_mutex_unlock(&device->lock);
	return error;
}

static cudaError_t find_thread_stream(struct device *device, struct stream **stream)
{
	struct thread_streams *streams = pthread_getspecific(thread_key);
	if (streams == NULL) {
		streams = calloc(1, sizeof(*streams));
		if (streams == NULL || pthread_setspecific(thread_key, streams) != 0) {
			free(streams);
			return cudaErrorMemoryAllocation;
		}
	}
	struct stream **own = &streams->stream[device->ordinal];
	if (*own == NULL) {
		cudaError_t error = create_stream(device, STREAM_BLOCKING, 0, own);
		if (error != cudaSuccess)
			return error;
	}
	*stream = *own;
	return cudaSuccess;
}

cudaError_t find_stream(cudaStream_t handle, struct stream **stream)
{
	if (handle == NULL || handle == cudaStreamLegacy)
		return find_legacy_stream(this_device(), stream);
	if (handle == cudaStreamPerThread)
		return find_thread_stream(this_device(), stream);
	if (!is_handle(handle, HANDLE_STREAM))
		return cudaErrorInvalidResourceHandle;
	*stream = handle;
	return cudaSuccess;
}

/* Ends of all streams, as points that hold their timelines. NULL and 0 if there are none. */
static struct point *collect_ends(struct device *device, size_t *count)
{
	size_t streams = 1;
	struct stream *stream;

	*count = 0;
	pthread_mutex_lock(&device->lock);
	LIST_FOREACH(stream, &device->streams, siblings)
		streams++;
	struct point *ends = calloc(streams, sizeof(*ends));
	if (ends != NULL) {
		struct stream *legacy = atomic_load_explicit(&device->legacy, memory_order_acquire);
		if (legacy != NULL)
			ends[(*count)++] = find_end(legacy);
		LIST_FOREACH(stream, &device->streams, siblings)
			ends[(*count)++] = find_end(stream);
	}
	for (size_t i = 0; i < *count; i++)
		hold_timeline(ends[i].timeline);
	pthread_mutex_unlock(&device->lock);
	return ends;
}

cudaError_t synchronize_device(struct device *device)
{
	size_t count;
	struct point *ends = collect_ends(device, &count);
	if (ends == NULL)
		return cudaErrorMemoryAllocation;
	for (size_t i = 0; i < count; i++) {
		wait_for_point(ends[i]);
		release_timeline(ends[i].timeline);
	}
	free(ends);
	return cudaSuccess;
}
