/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_gdr.h - GDRCopy's library (libgdrapi.so.2) of the tests' own, and a GPU's memory for it
 *
 * The memory is an anonymous file. In the process it has addresses and no rights, so whoever
 * touches it there gets a fault; gdr_map() makes a mapping of pinned pages, and a NIC takes the
 * file as it takes a dma-buf. What the real library refuses, this one refuses.
 */
#ifndef HA_TESTS_RMA_FAKE_GDR_H
#define HA_TESTS_RMA_FAKE_GDR_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_GDR_PAGE 65536

struct fake_gdr {
	/* The GPU's memory: fake_gdr_memory(). */
	uint8_t *gpu, *view; /* without rights; the test's own, not the library's */
	size_t size, used;
	int fd;
	/* what it is */
	int major, minor;
	int no_module;    /* 1: gdr_open() fails */
	int fail_pin_at;  /* that pin fails, counted from 1; 0: none */
	int fail_map_at;  /* that map fails */
	int fail_info_at; /* that question fails */
	uintptr_t below;  /* a mapping begins so far before what was pinned */
	/* what has been done */
	int opens, pins, maps, infos;
	int pinned, mapped; /* are alive */
	int misused;        /* calls that the real one would have refused */
};

struct fake_gdr *fake_gdr(void);
/* `size` bytes, whole pages. Once. */
void fake_gdr_memory(size_t size);

#endif
