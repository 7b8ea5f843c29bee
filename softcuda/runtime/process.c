/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softcuda/report.h"

_Atomic(enum process_state) process_state = PROCESS_UNUSED;

/* protects the change from UNUSED, and what follows */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct machine machine;
static unsigned visible_count;
static unsigned visible[MACHINE_DEVICES_MAX];
static _Thread_local int thread_device;
static _Thread_local bool thread_is_worker;

/*
 * The child has none of the threads that would execute its streams, and device memory is not
 * inherited.
 */
static void notice_fork(void)
{
	enum process_state ready = PROCESS_READY;
	atomic_compare_exchange_strong(&process_state, &ready, PROCESS_FORKED);
}

static bool is_visible(unsigned number)
{
	for (unsigned i = 0; i < visible_count; i++)
		if (visible[i] == number)
			return true;
	return false;
}

/*
 * CUDA's rule: the list ends at the first entry that is not a device, and a device named twice
 * hides all.
 */
static void read_visible_devices(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");
	visible_count = 0;
	if (text == NULL) {
		while (visible_count < machine.devices) {
			visible[visible_count] = visible_count;
			visible_count++;
		}
		return;
	}
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long number = strtoul(text, &end, 10);
		if (number >= machine.devices || (*end != ',' && *end != '\0'))
			return;
		if (is_visible((unsigned)number)) {
			visible_count = 0;
			return;
		}
		visible[visible_count++] = (unsigned)number;
		if (*end == '\0')
			return;
		text = end + 1;
	}
}

static enum process_state start_locked(void)
{
	const char *wrong = read_machine(&machine);
	if (wrong != NULL) {
		report_problem("%s; correct or unset it", wrong);
		return PROCESS_BROKEN;
	}
	read_visible_devices();
	pthread_atfork(NULL, NULL, notice_fork);
	return PROCESS_READY;
}

static void warn_of_fork(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		report_problem("this process was forked from one that had already used CUDA, and "
			       "cannot use it: "
			       "fork before the first CUDA call, or start a new program with exec");
}

cudaError_t start_runtime(void)
{
	enum process_state state = atomic_load_explicit(&process_state, memory_order_acquire);
	if (state == PROCESS_UNUSED) {
		pthread_mutex_lock(&start_lock);
		state = atomic_load_explicit(&process_state, memory_order_relaxed);
		if (state == PROCESS_UNUSED) {
			state = start_locked();
			atomic_store_explicit(&process_state, state, memory_order_release);
		}
		pthread_mutex_unlock(&start_lock);
	}
	if (state == PROCESS_READY)
		return cudaSuccess;
	if (state == PROCESS_FORKED)
		warn_of_fork();
	return cudaErrorInitializationError;
}

const struct machine *this_machine(void)
{
	return &machine;
}

unsigned count_devices(void)
{
	return visible_count;
}

unsigned find_device_number(unsigned ordinal)
{
	return visible[ordinal];
}

bool is_device(int ordinal)
{
	return ordinal >= 0 && (unsigned)ordinal < visible_count;
}

int current_device(void)
{
	return thread_device;
}

void set_current_device(int ordinal)
{
	thread_device = ordinal;
}

void mark_worker_thread(bool is_worker)
{
	thread_is_worker = is_worker;
}

bool is_worker_thread(void)
{
	return thread_is_worker;
}
