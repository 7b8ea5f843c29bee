/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names, numbers and signatures are those of GDRCopy's public header (gdrapi.h, 2.1 to 2.5).
 *
 * The library keeps its buffers on a list without a lock: all calls are under `lock` here.
 */
#include "plugin/rma/gdrcopy.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define LIBRARY "libgdrapi.so.2"
#define PAGE ((uintptr_t)1 << 16) /* GPU_PAGE_SIZE */

struct gdr_handle { /* gdr_mh_t */
	unsigned long h;
};

/* gdr_info_t of any version begins so; the room behind it is for what they append. */
struct gdr_info {
	uint64_t va; /* where the mapping begins; may lie before the address that was asked for */
	uint64_t rest[31];
};

static struct {
	void (*version)(int *major, int *minor);
	void *(*open)(void);
	int (*pin)(void *g, unsigned long address, size_t size, uint64_t token, uint32_t space,
		   struct gdr_handle *handle);
	int (*unpin)(void *g, struct gdr_handle handle);
	int (*info)(void *g, struct gdr_handle handle, struct gdr_info *info);
	int (*map)(void *g, struct gdr_handle handle, void **at, size_t size);
	int (*unmap)(void *g, struct gdr_handle handle, void *at, size_t size);
} gdr;

static const struct {
	void *pointer;
	const char *name, *older; /* what it was called before; NULL: the same */
} calls[] = {
	{ &gdr.version, "gdr_runtime_get_version", NULL },
	{ &gdr.open, "gdr_open", NULL },
	{ &gdr.pin, "gdr_pin_buffer", NULL },
	{ &gdr.unpin, "gdr_unpin_buffer", NULL },
	{ &gdr.info, "gdr_get_info_v2", "gdr_get_info" },
	{ &gdr.map, "gdr_map", NULL },
	{ &gdr.unmap, "gdr_unmap", NULL },
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *gdr_device; /* of gdr_open(); kept until the process ends */

struct ha_gdr_page {
	LIST_ENTRY(ha_gdr_page) link;
	uintptr_t first; /* of the GPU's addresses */
	struct gdr_handle handle;
	void *map;      /* where the mapping begins in this process */
	uintptr_t from; /* and at the GPU: `first`, or before it */
	size_t size;    /* of the mapping */
};

static bool find_calls(void *library, char *why)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *call = dlsym(library, calls[i].name);

		if (!call && calls[i].older)
			call = dlsym(library, calls[i].older);
		*(void **)calls[i].pointer = call;
		if (call)
			continue;
		snprintf(why, HA_GDR_WHY, "its " LIBRARY " has no %s: install GDRCopy 2.1 or newer",
			 calls[i].name);
		return false;
	}
	return true;
}

static bool open_device(char *why)
{
	int major = 0, minor = 0;

	gdr.version(&major, &minor);
	if (major != 2 || minor < 1) {
		snprintf(why, HA_GDR_WHY,
			 "its " LIBRARY " is version %d.%d: install GDRCopy 2.1 or a newer 2.x",
			 major, minor);
		return false;
	}
	gdr_device = gdr.open();
	if (!gdr_device)
		snprintf(why, HA_GDR_WHY,
			 "gdr_open failed: load GDRCopy's kernel module (modprobe gdrdrv) and let "
			 "this process open /dev/gdrdrv");
	return gdr_device != NULL;
}

/*
 * Tried again by each registration until it succeeds: the module may have been loaded meanwhile.
 */
static int open_library(char *why)
{
	void *library;

	if (gdr_device)
		return 0;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		snprintf(why, HA_GDR_WHY,
			 "there is no " LIBRARY
			 ": install GDRCopy (libgdrapi, and its kernel module gdrdrv)");
		return -ENOENT;
	}
	if (find_calls(library, why) && open_device(why))
		return 0;
	dlclose(library);
	return -ENOENT;
}

/* ---- pages ---- */

static int map_pinned(struct ha_gdr_page *p, char *why)
{
	struct gdr_info info = { 0 };
	int error = gdr.info(gdr_device, p->handle, &info);

	if (!error && (info.va > p->first || p->first - info.va >= PAGE))
		error = EINVAL;
	if (error) {
		snprintf(why, HA_GDR_WHY, "gdr_get_info failed (%d) for GPU memory at %#lx", error,
			 (unsigned long)p->first);
		return -EIO;
	}
	p->from = (uintptr_t)info.va;
	p->size = PAGE + (p->first - p->from);
	error = gdr.map(gdr_device, p->handle, &p->map, p->size);
	if (error)
		snprintf(why, HA_GDR_WHY, "gdr_map failed (%d) for GPU memory at %#lx", error,
			 (unsigned long)p->first);
	return error ? -EIO : 0;
}

static int map_page(struct ha_gdr_page *p, char *why)
{
	int err, error = gdr.pin(gdr_device, p->first, PAGE, 0, 0, &p->handle);

	if (error) {
		snprintf(why, HA_GDR_WHY,
			 "gdr_pin_buffer failed (%d) for GPU memory at %#lx: see dmesg, and with "
			 "nvidia-smi -q whether the GPU's BAR1 is full",
			 error, (unsigned long)p->first);
		return -EIO;
	}
	err = map_pinned(p, why);
	if (err)
		gdr.unpin(gdr_device, p->handle);
	return err;
}

static int new_page(struct ha_gdr_pages *pages, uintptr_t first, struct ha_gdr_page **out,
		    char *why)
{
	struct ha_gdr_page *p = calloc(1, sizeof(*p));
	int err;

	if (!p) {
		snprintf(why, HA_GDR_WHY, "out of memory");
		return -ENOMEM;
	}
	p->first = first;
	pthread_mutex_lock(&lock);
	err = open_library(why);
	if (!err)
		err = map_page(p, why);
	pthread_mutex_unlock(&lock);
	if (err) {
		free(p);
		return err;
	}
	LIST_INSERT_HEAD(pages, p, link);
	*out = p;
	return 0;
}

int ha_gdr_map(struct ha_gdr_pages *pages, uintptr_t address, volatile uint64_t **word,
	       char why[HA_GDR_WHY])
{
	struct ha_gdr_page *p;
	int err = 0;

	LIST_FOREACH(p, pages, link)
		if (address - p->first < PAGE)
			break;
	if (!p)
		err = new_page(pages, address & ~(PAGE - 1), &p, why);
	if (!err)
		*word = (volatile uint64_t *)((char *)p->map + (address - p->from));
	return err;
}

void ha_gdr_unmap(struct ha_gdr_pages *pages)
{
	struct ha_gdr_page *p;

	pthread_mutex_lock(&lock);
	while ((p = LIST_FIRST(pages)) != NULL) {
		LIST_REMOVE(p, link);
		gdr.unmap(gdr_device, p->handle, p->map, p->size);
		gdr.unpin(gdr_device, p->handle);
		free(p);
	}
	pthread_mutex_unlock(&lock);
}

/* The mapping is write-combining: the store stays in the processor until a fence. */
void ha_gdr_add(volatile uint64_t *word, uint64_t value)
{
	*word += value;
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dsb st" ::: "memory");
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
