/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gdrcopy.h - the processor's way into GPU memory that is not mapped into the process
 *
 * GDRCopy's library (libgdrapi.so.2, MIT licence), found at run time; nothing is linked and no
 * header is needed. It has run against a library of the tests' own, never against the real one.
 */
#ifndef HA_RMA_GDRCOPY_H
#define HA_RMA_GDRCOPY_H

#include <stdint.h>
#include <sys/queue.h>

#define HA_GDR_WHY 200 /* bytes of a reason, the end included */

/* Pages of a GPU, 64 KiB each, that are mapped: those of one window. */
struct ha_gdr_page;
LIST_HEAD(ha_gdr_pages, ha_gdr_page);

/*
 * The 8 bytes at `address`, a multiple of 8, as this process reaches them until ha_gdr_unmap(). The
 * page is mapped by the first call for it. -ENOENT: no GDRCopy that can be used; -EIO: it cannot
 * map this memory; -ENOMEM. `why` then says what happened and what to do, without an end of line.
 */
int ha_gdr_map(struct ha_gdr_pages *pages, uintptr_t address, volatile uint64_t **word,
	       char why[HA_GDR_WHY]);
void ha_gdr_unmap(struct ha_gdr_pages *pages);

/*
 * Add to such a word. Not atomic: across PCIe no instruction is. The caller is the only one who
 * adds, and nobody resets the word meanwhile. Visible to the GPU before any later store.
 */
void ha_gdr_add(volatile uint64_t *word, uint64_t value);

#endif
