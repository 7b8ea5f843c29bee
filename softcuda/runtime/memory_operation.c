/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/memory_operation.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/yield.h"

struct memory_operations {
	struct operation base;
	unsigned count;
	CUstreamBatchMemOpParams list[];
};

/* ---- one operation ---- */

static bool is_wide(const CUstreamBatchMemOpParams *one)
{
	return one->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
	       one->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* What is in memory, sign-extended to the width of the comparison. */
static uint64_t load_value(const CUstreamBatchMemOpParams *one)
{
	const void *address = (const void *)(uintptr_t)one->value.address;
	if (is_wide(one))
		return __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE);
	return __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
}

static bool is_satisfied(const CUstreamBatchMemOpParams *one)
{
	uint64_t mask = is_wide(one) ? UINT64_MAX : UINT32_MAX;
	uint64_t found = load_value(one);
	uint64_t wanted = one->value.value & mask;

	switch (one->value.flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) {
	case CU_STREAM_WAIT_VALUE_EQ:
		return found == wanted;
	case CU_STREAM_WAIT_VALUE_AND:
		return (found & wanted) != 0;
	case CU_STREAM_WAIT_VALUE_NOR:
		return (~(found | wanted) & mask) != 0;
	default: /* not behind, also across a wrap */
		if (is_wide(one))
			return (int64_t)(found - wanted) >= 0;
		return (int32_t)(uint32_t)(found - wanted) >= 0;
	}
}

/*
 * Who writes the value is another device, a NIC or a thread of the program: nobody who could wake
 * this thread.
 */
static void wait_for_value(const CUstreamBatchMemOpParams *one)
{
	struct ha_yield yield = { 0 };
	uint64_t start = ha_clock_now(&ha_clock_live);

	while (!is_satisfied(one)) {
		uint64_t idle = ha_clock_now(&ha_clock_live) - start;
		if (idle < HA_IDLE_SLEEP_MIN_NS && ha_yield(&yield))
			continue;
		struct timespec nap = { .tv_nsec = (long)ha_idle_sleep_ns(idle) };
		nanosleep(&nap, NULL);
	}
}

static void write_value(const CUstreamBatchMemOpParams *one)
{
	void *address = (void *)(uintptr_t)one->value.address;
	if (is_wide(one))
		__atomic_store_n((uint64_t *)address, one->value.value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)address, (uint32_t)one->value.value, __ATOMIC_RELEASE);
}

/*
 * Every store before it is visible before every one after it. An operation, as ThreadSanitizer
 * knows no plain fences.
 */
static void order_stores(void)
{
	static _Atomic unsigned word;
	atomic_fetch_add_explicit(&word, 0, memory_order_seq_cst);
}

static void run_one(const CUstreamBatchMemOpParams *one)
{
	switch (one->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		wait_for_value(one);
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		write_value(one);
		break;
	default: /* flushes and barriers */
		order_stores();
		break;
	}
}

/* ---- the list as one operation of a stream ---- */

static void run_memory_operations(const struct operation *operation)
{
	const struct memory_operations *own = (const struct memory_operations *)operation;
	for (unsigned i = 0; i < own->count; i++)
		run_one(&own->list[i]);
}

static bool is_wait(const CUstreamBatchMemOpParams *one)
{
	return one->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
	       one->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(const CUstreamBatchMemOpParams *one)
{
	return one->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
	       one->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static bool is_valid(const CUstreamBatchMemOpParams *one)
{
	if (is_wait(one) || is_write(one)) {
		uint64_t size = is_wide(one) ? 8 : 4;
		return one->value.address != 0 && one->value.address % size == 0;
	}
	return one->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES ||
	       one->operation == CU_STREAM_MEM_OP_BARRIER;
}

cudaError_t create_memory_operations(const CUstreamBatchMemOpParams *list, unsigned count,
				     struct operation **operation)
{
	bool brief = true;

	for (unsigned i = 0; i < count; i++) {
		if (!is_valid(&list[i]))
			return cudaErrorInvalidValue;
		brief = brief && !is_wait(&list[i]);
	}
	size_t bytes = count * sizeof(list[0]);
	struct memory_operations *own =
		create_operation(sizeof(*own) + bytes, OPERATION_MEMORY, run_memory_operations);
	if (own == NULL)
		return cudaErrorMemoryAllocation;
	own->base.brief = brief;
	own->count = count;
	memcpy(own->list, list, bytes);
	*operation = &own->base;
	return cudaSuccess;
}
