/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * process.h - the runtime of this process: read settings, devices, current device of a thread, fork
 */
#ifndef SOFTCUDA_PROCESS_H
#define SOFTCUDA_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>

#include "softcuda/machine.h"
#include "softcuda/runtime/errors.h"

/*
 * UNUSED --> READY                  the first call of the process
 *        \-> BROKEN                 the environment is wrong; said once
 *            READY --> FORKED       in a child after fork, which has neither the parent's threads
 *                                   nor its memory
 */
enum process_state { PROCESS_UNUSED, PROCESS_READY, PROCESS_BROKEN, PROCESS_FORKED };

extern _Atomic(enum process_state) process_state;

/* The slow part of enter_runtime. */
cudaError_t start_runtime(void);

/* Every call of the API begins here. cudaSuccess, or why this process cannot use CUDA. */
static inline cudaError_t enter_runtime(void)
{
	if (__builtin_expect(
		    atomic_load_explicit(&process_state, memory_order_acquire) == PROCESS_READY, 1))
		return cudaSuccess;
	return start_runtime();
}

#define ENTER_RUNTIME()                                           \
	do {                                                      \
		cudaError_t entered_ = enter_runtime();           \
		if (__builtin_expect(entered_ != cudaSuccess, 0)) \
			return record_error(entered_);            \
	} while (0)

/* What read_machine found; valid once the runtime has started. */
const struct machine *this_machine(void);
/*
 * Devices that this process sees (CUDA_VISIBLE_DEVICES), and the machine's number of one of them.
 */
unsigned count_devices(void);
unsigned find_device_number(unsigned ordinal);
bool is_device(int ordinal);

/* The calling thread's current device, 0 until it is set. */
int current_device(void);
void set_current_device(int ordinal);

/*
 * Host functions and kernels run on a stream's worker thread, or on one that waits for the stream.
 * A call from there that waits for a stream could wait for itself; CUDA forbids such calls, and
 * here they are refused.
 */
void mark_worker_thread(bool is_worker);
bool is_worker_thread(void);

#endif
