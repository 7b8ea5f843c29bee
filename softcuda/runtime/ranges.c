/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/ranges.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* protects what follows */
static struct range *ranges;                               /* sorted by start */
static size_t count;
static size_t capacity;
static uint64_t next_number = 1;

/* The number of ranges that start at or below `address`. */
static size_t count_up_to(uintptr_t address)
{
	size_t low = 0;
	size_t high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool grow_locked(void)
{
	if (count < capacity)
		return true;
	size_t wanted = capacity == 0 ? 256 : capacity * 2;
	struct range *grown = realloc(ranges, wanted * sizeof(*grown));
	if (grown == NULL)
		return false;
	ranges = grown;
	capacity = wanted;
	return true;
}

static bool add_locked(const struct range *range)
{
	size_t at = count_up_to(range->start);
	if (at > 0 && ranges[at - 1].start + ranges[at - 1].size > range->start)
		return false;
	if (at < count && range->start + range->size > ranges[at].start)
		return false;
	if (!grow_locked())
		return false;
	memmove(&ranges[at + 1], &ranges[at], (count - at) * sizeof(*ranges));
	ranges[at] = *range;
	ranges[at].number = next_number++;
	count++;
	return true;
}

bool add_range(const struct range *range)
{
	pthread_rwlock_wrlock(&lock);
	bool added = add_locked(range);
	pthread_rwlock_unlock(&lock);
	return added;
}

bool find_range(const void *address, struct range *range)
{
	bool found = false;

	pthread_rwlock_rdlock(&lock);
	size_t at = count_up_to((uintptr_t)address);
	if (at > 0 && (uintptr_t)address - ranges[at - 1].start < ranges[at - 1].size) {
		*range = ranges[at - 1];
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

bool remove_range(const void *start, enum range_kind kind, struct range *range)
{
	bool found = false;

	pthread_rwlock_wrlock(&lock);
	size_t at = count_up_to((uintptr_t)start);
	if (at > 0 && ranges[at - 1].start == (uintptr_t)start && ranges[at - 1].kind == kind) {
		*range = ranges[at - 1];
		memmove(&ranges[at - 1], &ranges[at], (count - at) * sizeof(*ranges));
		count--;
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}
