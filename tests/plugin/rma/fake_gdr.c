/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/rma/fake_gdr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PINS 256

struct handle { /* gdr_mh_t */
	unsigned long h;
};

static struct fake_gdr state = { .major = 2, .minor = 5, .fd = -1 };
static int device;

static struct pin {
	uintptr_t first;
	size_t size;
	void *map; /* NULL: not mapped */
	size_t map_size;
} pin[PINS];

struct fake_gdr *fake_gdr(void)
{
	return &state;
}

void fake_gdr_memory(size_t size)
{
	/* The addresses of a GPU's pages are multiples of 64 KiB. */
	uint8_t *room =
		mmap(NULL, size + FAKE_GDR_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	state.fd = memfd_create("gpu", MFD_CLOEXEC);
	if (room == MAP_FAILED || state.fd < 0 || ftruncate(state.fd, (off_t)size))
		abort();
	state.gpu = room + (-(uintptr_t)room & (FAKE_GDR_PAGE - 1));
	state.size = size;
	state.view = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, state.fd, 0);
	if (state.view == MAP_FAILED)
		abort();
}

void gdr_runtime_get_version(int *major, int *minor)
{
	*major = state.major;
	*minor = state.minor;
}

void *gdr_open(void)
{
	state.opens++;
	return state.no_module ? NULL : &device;
}

static int count_misuse(void)
{
	state.misused++;
	return EINVAL;
}

static struct pin *pin_of(void *g, struct handle h)
{
	if (g != &device || h.h < 1 || h.h > PINS || !pin[h.h - 1].size)
		return NULL;
	return &pin[h.h - 1];
}

static int new_pin(unsigned long address, size_t size, struct handle *h)
{
	for (unsigned i = 0; i < PINS; i++) {
		if (pin[i].size)
			continue;
		pin[i] = (struct pin) { .first = address, .size = size };
		h->h = i + 1;
		state.pinned++;
		return 0;
	}
	return ENOMEM;
}

int gdr_pin_buffer(void *g, unsigned long address, size_t size, uint64_t token, uint32_t space,
		   struct handle *h)
{
	uintptr_t base = (uintptr_t)state.gpu;

	if (++state.pins == state.fail_pin_at)
		return ENOMEM;
	if (g != &device || token || space || !size || address % FAKE_GDR_PAGE)
		return count_misuse();
	if (address < base || address - base > state.size || size > state.size - (address - base))
		return EINVAL; /* no memory of a GPU */
	return new_pin(address, size, h);
}

int gdr_unpin_buffer(void *g, struct handle h)
{
	struct pin *p = pin_of(g, h);

	if (!p || p->map)
		return count_misuse();
	memset(p, 0, sizeof(*p));
	state.pinned--;
	return 0;
}

static uintptr_t begin_of(const struct pin *p)
{
	uintptr_t into = p->first - (uintptr_t)state.gpu;

	return p->first - (state.below < into ? state.below : into);
}

/* As gdr_info_v2_t begins. */
struct info {
	uint64_t va, mapped_size;
	uint32_t page_size;
	uint64_t tm_cycles;
	uint32_t cycles_per_ms;
	unsigned mapped : 1, wc_mapping : 1;
	int mapping_type;
};

int gdr_get_info_v2(void *g, struct handle h, struct info *info)
{
	const struct pin *p = pin_of(g, h);

	if (++state.infos == state.fail_info_at)
		return EIO;
	if (!p)
		return count_misuse();
	*info = (struct info) { .va = begin_of(p),
				.mapped_size = p->size + (p->first - begin_of(p)),
				.page_size = FAKE_GDR_PAGE,
				.mapped = p->map != NULL,
				.wc_mapping = 1,
				.mapping_type = 1 };
	return 0;
}

int gdr_map(void *g, struct handle h, void **at, size_t size)
{
	struct pin *p = pin_of(g, h);
	void *map;

	if (++state.maps == state.fail_map_at)
		return EAGAIN;
	if (!p || p->map || size > p->size + (p->first - begin_of(p)))
		return count_misuse();
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, state.fd,
		   (off_t)(begin_of(p) - (uintptr_t)state.gpu));
	if (map == MAP_FAILED)
		return errno;
	*at = p->map = map;
	p->map_size = size;
	state.mapped++;
	return 0;
}

int gdr_unmap(void *g, struct handle h, void *at, size_t size)
{
	struct pin *p = pin_of(g, h);

	if (!p || p->map != at || size != p->map_size)
		return count_misuse();
	munmap(at, size);
	p->map = NULL;
	state.mapped--;
	return 0;
}
