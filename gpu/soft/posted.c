/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/soft/posted.h"

#include "gpu/device/env.h"
#include "gpu/soft/lock.h"

#include <string.h>

void soft_posted_apart(struct soft_fabric *f, const void *memory, uint64_t bytes, uint64_t late_ns)
{
	for (unsigned i = 0; i < SOFT_APART_MAX; i++)
		if (!f->apart[i].bytes) {
			f->apart[i].from = (uint64_t)(uintptr_t)memory;
			f->apart[i].bytes = bytes;
			f->late_ns = late_ns;
			return;
		}
}

void soft_copy_data(uint64_t to, uint64_t from, uint64_t bytes)
{
	uint64_t half = bytes / 2;

	if (!((to | from | bytes) & 7) && bytes <= 32) {
		for (uint64_t i = 0; i < bytes; i += 8)
			ha_gpu_store((uint64_t *)(uintptr_t)(to + i),
				     ha_gpu_load((const uint64_t *)(uintptr_t)(from + i)));
		return;
	}
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, half);
#ifdef HA_GPU_SIM
	ha_gpu_emu_step();
#endif
	memcpy((void *)(uintptr_t)(to + half), (const void *)(uintptr_t)(from + half),
	       bytes - half);
}

static bool is_apart(const struct soft_fabric *f, uint64_t address)
{
	for (unsigned i = 0; i < SOFT_APART_MAX; i++)
		if (address - f->apart[i].from < f->apart[i].bytes)
			return true;
	return false;
}

/* The oldest comes; under the lock. */
static void land_oldest(struct soft_posted *p)
{
	const struct soft_posted_write *w = &p->write[p->tail++ % SOFT_POSTED_MAX];

	soft_copy_data(w->to, (uint64_t)(uintptr_t)w->data, w->bytes);
}

void soft_posted_flush(struct soft_nic *n)
{
	struct soft_posted *p = &n->posted;

	if (!n->fabric->late_ns)
		return;
	soft_lock(&p->lock);
	while (p->tail != p->head)
		land_oldest(p);
	soft_unlock(&p->lock);
}

void soft_posted_drop(struct soft_nic *n)
{
	if (!n->fabric->late_ns)
		return;
	soft_lock(&n->posted.lock);
	n->posted.tail = n->posted.head;
	soft_unlock(&n->posted.lock);
}

void soft_posted_order(struct soft_nic *n, uint64_t address)
{
	if (is_apart(n->fabric, address))
		soft_posted_flush(n);
}

static void post_write(struct soft_nic *n, uint64_t to, uint64_t from, uint64_t bytes)
{
	struct soft_posted *p = &n->posted;
	struct soft_posted_write *w;

	soft_lock(&p->lock);
	if (p->head - p->tail == SOFT_POSTED_MAX)
		land_oldest(p);
	w = &p->write[p->head++ % SOFT_POSTED_MAX];
	w->due_ns = ha_gpu_now() + n->fabric->late_ns;
	w->to = to;
	w->bytes = bytes;
	memcpy(w->data, (const void *)(uintptr_t)from, bytes);
	soft_unlock(&p->lock);
}

void soft_posted_write(struct soft_nic *n, uint64_t to, uint64_t from, uint64_t bytes)
{
	bool apart = is_apart(n->fabric, to);

	if (apart && bytes <= SOFT_POSTED_BYTES) {
		post_write(n, to, from, bytes);
		return;
	}
	if (apart)
		soft_posted_flush(n); /* in their order */
	soft_copy_data(to, from, bytes);
}

bool soft_posted_land(struct soft_nic *n)
{
	struct soft_posted *p = &n->posted;
	uint64_t now = ha_gpu_now();
	bool any = false;

	if (!n->fabric->late_ns)
		return false;
	soft_lock(&p->lock);
	while (p->tail != p->head && p->write[p->tail % SOFT_POSTED_MAX].due_ns <= now) {
		land_oldest(p);
		any = true;
	}
	soft_unlock(&p->lock);
	return any;
}
