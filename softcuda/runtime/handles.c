/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/runtime/handles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

/* Open addressing with linear probing; at most half of the slots are used. */
struct slot {
	const void *object; /* NULL: free */
	enum handle_kind kind;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* protects what follows */
static struct slot *slots;
static size_t slot_count; /* a power of two */
static size_t used;

static size_t first_slot(const void *object)
{
	uint64_t hash = (uint64_t)(uintptr_t)object * 0x9e3779b97f4a7c15ull;
	return (size_t)(hash >> 20) & (slot_count - 1);
}

static void place_locked(const void *object, enum handle_kind kind)
{
	size_t i = first_slot(object);
	while (slots[i].object != NULL)
		i = (i + 1) & (slot_count - 1);
	slots[i] = (struct slot) { object, kind };
}

static bool grow_locked(void)
{
	size_t old_count = slot_count;
	struct slot *old = slots;
	size_t new_count = old_count == 0 ? 1024 : old_count * 2;
	struct slot *new = calloc(new_count, sizeof(*new));
	if (new == NULL)
		return false;
	slots = new;
	slot_count = new_count;
	for (size_t i = 0; i < old_count; i++)
		if (old[i].object != NULL)
			place_locked(old[i].object, old[i].kind);
	free(old);
	return true;
}

bool add_handle(const void *object, enum handle_kind kind)
{
	bool added = true;

	pthread_rwlock_wrlock(&lock);
	if (used * 2 >= slot_count)
		added = grow_locked();
	if (added) {
		place_locked(object, kind);
		used++;
	}
	pthread_rwlock_unlock(&lock);
	return added;
}

/* The slot of a live handle, or slot_count. */
static size_t find_locked(const void *object, enum handle_kind kind)
{
	if (object == NULL || slot_count == 0)
		return slot_count;
	for (size_t i = first_slot(object); slots[i].object != NULL; i = (i + 1) & (slot_count - 1))
		if (slots[i].object == object && slots[i].kind == kind)
			return i;
	return slot_count;
}

bool is_handle(const void *object, enum handle_kind kind)
{
	pthread_rwlock_rdlock(&lock);
	bool found = find_locked(object, kind) != slot_count;
	pthread_rwlock_unlock(&lock);
	return found;
}

/* Later entries of the same run move up, so that no search ends at the hole. */
static void close_hole_locked(size_t hole)
{
	slots[hole].object = NULL;
	for (size_t i = (hole + 1) & (slot_count - 1); slots[i].object != NULL;
	     i = (i + 1) & (slot_count - 1)) {
		struct slot moved = slots[i];
		slots[i].object = NULL;
		place_locked(moved.object, moved.kind);
	}
}

bool remove_handle(const void *object, enum handle_kind kind)
{
	pthread_rwlock_wrlock(&lock);
	size_t i = find_locked(object, kind);
	bool found = i != slot_count;
	if (found) {
		close_hole_locked(i);
		used--;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}
