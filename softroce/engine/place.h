/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.h - payload into a program's memory, as a NIC's DMA engine places it
 *
 * Programs poll memory that a peer writes: a flag or a counter at the end of a small record. A NIC writes such a
 * record line by line with its end last, so a program that sees the end (load-acquire) also sees what stands before
 * it. memcpy promises nothing of the kind.
 */
#ifndef SR_ENGINE_PLACE_H
#define SR_ENGINE_PLACE_H

#include <stdint.h>
#include <string.h>

#define SR_PLACE_WORDS 512 /* bytes up to which each word of the payload may be polled on */

/* Copy len bytes in ascending order. Each aligned word of a short payload, and the last one of any, is a
 * store-release. */
static inline void sr_place(void *to, const void *from, uint32_t len)
{
	char *t = to;
	const char *f = from;
	uint32_t body = 0, head = (uint32_t)(-(uintptr_t)t & 7);

	if (len < head + sizeof(uint64_t)) {
		memcpy(t, f, len);
		return;
	}
	if (len > SR_PLACE_WORDS)
		body = (len - head - sizeof(uint64_t)) & ~7u;
	memcpy(t, f, head + body);
	for (uint32_t at = head + body; len - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, f + at, sizeof(word));
		__atomic_store_n((uint64_t *)(t + at), word, __ATOMIC_RELEASE);
	}
	memcpy(t + len - (len - head) % sizeof(uint64_t), f + len - (len - head) % sizeof(uint64_t),
	       (len - head) % sizeof(uint64_t));
}

#endif
