/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, numbers and signatures are the CUDA Runtime API's (its reference manual, version 11 on;
 * unchanged since for these).
 */
#include "ina/host/front/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SUCCESS 0
#define ALREADY_REGISTERED 712
#define NOT_READY 600
#define REGISTER_PORTABLE 1u
#define STREAM_NON_BLOCKING 1u
#define EVENT_DISABLE_TIMING 2u
#define HOST_TO_DEVICE 1
#define DEVICE_TO_HOST 2

static struct {
	int (*get_device)(int *device);
	int (*set_device)(int device);
	int (*host_register)(void *p, size_t bytes, unsigned flags);
	int (*host_unregister)(void *p);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_destroy)(void *stream);
	int (*stream_wait_event)(void *stream, void *event, unsigned flags);
	int (*stream_query)(void *stream);
	int (*memcpy_async)(void *to, const void *from, size_t bytes, int kind, void *stream);
	int (*event_create)(void **event, unsigned flags);
	int (*event_record)(void *event, void *stream);
	int (*event_query)(void *event);
	int (*event_destroy)(void *event);
	const char *(*error_string)(int error);
} cuda;

static const struct {
	void *pointer;
	const char *name;
} calls[] = {
	{ &cuda.get_device, "cudaGetDevice" },
	{ &cuda.set_device, "cudaSetDevice" },
	{ &cuda.host_register, "cudaHostRegister" },
	{ &cuda.host_unregister, "cudaHostUnregister" },
	{ &cuda.stream_create, "cudaStreamCreateWithFlags" },
	{ &cuda.stream_destroy, "cudaStreamDestroy" },
	{ &cuda.stream_wait_event, "cudaStreamWaitEvent" },
	{ &cuda.stream_query, "cudaStreamQuery" },
	{ &cuda.memcpy_async, "cudaMemcpyAsync" },
	{ &cuda.event_create, "cudaEventCreateWithFlags" },
	{ &cuda.event_record, "cudaEventRecord" },
	{ &cuda.event_query, "cudaEventQuery" },
	{ &cuda.event_destroy, "cudaEventDestroy" },
	{ &cuda.error_string, "cudaGetErrorString" },
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char missing[CUDA_WHY]; /* empty: it is there */

/* What the program has, then what is loaded, then what the loader finds; false: none. */
static bool find_runtime(void **library)
{
	static const char *const names[] = { "libcudart.so", "libcudart.so.13", "libcudart.so.12",
					     "libcudart.so.11.0" };

	*library = RTLD_DEFAULT; /* which is NULL */
	if (dlsym(RTLD_DEFAULT, "cudaMemcpyAsync"))
		return true;
	for (size_t i = 0; !*library && i < sizeof(names) / sizeof(names[0]); i++)
		*library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	for (size_t i = 0; !*library && i < sizeof(names) / sizeof(names[0]); i++)
		*library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return *library != NULL;
}

static void load_runtime(void)
{
	void *library;

	if (!find_runtime(&library)) {
		snprintf(missing, sizeof(missing),
			 "memory of a GPU, and no CUDA runtime: libcudart.so is not where the "
			 "loader looks "
			 "(LD_LIBRARY_PATH), or copy to host memory first");
		return;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = dlsym(library, calls[i].name);

		*(void **)calls[i].pointer = call;
		if (!call && !*missing)
			snprintf(missing, sizeof(missing),
				 "the CUDA runtime has no %s: it must be version 11 or newer",
				 calls[i].name);
	}
}

static int explain_error(int error, const char *call, char why[CUDA_WHY])
{
	snprintf(why, CUDA_WHY, "%s: %s (%d)", call, cuda.error_string(error), error);
	return -EIO;
}

#define TRY(call, ...)                          \
	do {                                    \
		error = cuda.call(__VA_ARGS__); \
		if (error) {                    \
			*step = #call;          \
			goto failed;            \
		}                               \
	} while (0)

/* The memory is pinned once for all devices, so that copies do not wait for the processor. */
static int pin_memory(struct ina_cuda_buffer *b, void *memory, size_t bytes, char why[CUDA_WHY])
{
	int error;

	if (b->memory)
		return 0;
	error = cuda.host_register(memory, bytes, REGISTER_PORTABLE);
	if (error && error != ALREADY_REGISTERED)
		return explain_error(error, "cudaHostRegister of the copy buffer", why);
	b->memory = memory;
	return 0;
}

int ina_cuda_use(struct ina_cuda_buffer *b, void *memory, size_t bytes,
		 struct ina_cuda_stream **stream, char why[CUDA_WHY])
{
	struct ina_cuda_stream *s;
	int device = 0, error, err;

	pthread_once(&once, load_runtime);
	if (*missing) {
		snprintf(why, CUDA_WHY, "%s", missing);
		return -ENOSYS;
	}
	error = cuda.get_device(&device);
	if (error || device < 0 || device >= CUDA_DEVICES)
		return explain_error(error, "cudaGetDevice", why);
	err = pin_memory(b, memory, bytes, why);
	if (err)
		return err;
	if (!b->stream[device]) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return explain_error(2, "no memory for streams", why);
		s->device = device;
		error = cuda.stream_create(&s->in, STREAM_NON_BLOCKING);
		if (!error)
			error = cuda.stream_create(&s->out, STREAM_NON_BLOCKING);
		if (error) {
			if (s->in)
				cuda.stream_destroy(s->in);
			free(s);
			return explain_error(error, "cudaStreamCreateWithFlags", why);
		}
		b->stream[device] = s;
	}
	*stream = b->stream[device];
	return 0;
}

void ina_cuda_drop(struct ina_cuda_buffer *b)
{
	for (int i = 0; i < CUDA_DEVICES; i++) {
		struct ina_cuda_stream *s = b->stream[i];

		if (!s)
			continue;
		cuda.set_device(i);
		cuda.stream_destroy(s->in);
		cuda.stream_destroy(s->out);
		free(s);
		b->stream[i] = NULL;
	}
	if (b->memory)
		cuda.host_unregister(b->memory);
	b->memory = NULL;
}

int ina_cuda_mark(void *callers, void **event, char why[CUDA_WHY])
{
	int error = cuda.event_create(event, EVENT_DISABLE_TIMING);

	if (error)
		return explain_error(error, "cudaEventCreateWithFlags", why);
	error = cuda.event_record(*event, callers);
	if (!error)
		return 0;
	cuda.event_destroy(*event);
	*event = NULL;
	return explain_error(error, "cudaEventRecord on the caller's stream", why);
}

void ina_cuda_forget(void *event)
{
	if (event)
		cuda.event_destroy(event);
}

/* An event behind all that was queued. 0, or CUDA's error. */
static int mark_end(struct ina_cuda_copy *c, const char **step)
{
	int error;

	TRY(set_device, c->device);
	TRY(event_create, &c->event, EVENT_DISABLE_TIMING);
	TRY(event_record, c->event, c->stream);
	return 0;
failed:
	ina_cuda_forget(c->event);
	c->event = NULL;
	return error;
}

/* From the copy's start on its memory is CUDA's, whatever fails after it. */
static int queue_copy(struct ina_cuda_copy *c, void *stream, int device, void *to, const void *from,
		      size_t bytes, int kind, void *after, char why[CUDA_WHY])
{
	const char *at = NULL, **step = &at;
	int error;

	*c = (struct ina_cuda_copy) { .device = device };
	TRY(set_device, device);
	if (after)
		TRY(stream_wait_event, stream, after, 0);
	TRY(memcpy_async, to, from, bytes, kind, stream);
	c->stream = stream;
	error = mark_end(c, step);
	if (!error)
		return 0;
failed:
	return explain_error(error, at, why);
}

int ina_cuda_from_device(struct ina_cuda_stream *s, void *to, const void *from, size_t bytes,
			 void *after, struct ina_cuda_copy *c, char why[CUDA_WHY])
{
	return queue_copy(c, s->in, s->device, to, from, bytes, DEVICE_TO_HOST, after, why);
}

int ina_cuda_to_device(struct ina_cuda_stream *s, void *to, const void *from, size_t bytes,
		       void *after, struct ina_cuda_copy *c, char why[CUDA_WHY])
{
	return queue_copy(c, s->out, s->device, to, from, bytes, HOST_TO_DEVICE, after, why);
}

int ina_cuda_done(struct ina_cuda_copy *c, char why[CUDA_WHY])
{
	const char *step;
	int error;

	if (!c->event)
		(void)mark_end(c, &step);
	error = c->event ? cuda.event_query(c->event) : cuda.stream_query(c->stream);
	if (error == NOT_READY)
		return 0;
	ina_cuda_forget(c->event);
	*c = (struct ina_cuda_copy) { .stream = NULL };
	if (error)
		return explain_error(error, "a copy", why);
	return 1;
}
