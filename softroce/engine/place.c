/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * place.c - payload into memory in the order in which programs may poll it; see place.h
 *
 * Programs poll memory that a peer writes: a counter behind a record, or, in NCCL's LL128 protocol,
 * the last word of each line of 128 bytes. A NIC writes ascending addresses, so whoever sees the
 * flag sees the data.
 * memcpy promises nothing of the kind: glibc's stores the first 64 bytes of a packet last.
 *
 * Each store is therefore one aligned piece, and stores keep their order. x86-64 makes stores
 * visible in program order and needs a promise of the compiler only; there the pieces are 16 bytes
 * where the processor stores them at once, which is documented of all that have AVX. Elsewhere each
 * 8 bytes are a store-release. Not used, because they are weakly ordered: string instructions (rep
 * movs), non-temporal stores.
 */
#include "softroce/engine/place.h"

#include <stdbool.h>
#include <string.h>

#define STORE(type, to, from)                                                     \
	do {                                                                      \
		type piece_;                                                      \
		memcpy(&piece_, from, sizeof(piece_));                            \
		__atomic_store_n((type *)(void *)(to), piece_, __ATOMIC_RELEASE); \
	} while (0)

/* A piece of 1, 2, 4 or 8 bytes, aligned at its destination. */
static void store_piece(char *to, const char *from, uint32_t size)
{
	switch (size) {
	case 1:
		STORE(uint8_t, to, from);
		break;
	case 2:
		STORE(uint16_t, to, from);
		break;
	case 4:
		STORE(uint32_t, to, from);
		break;
	default:
		STORE(uint64_t, to, from);
		break;
	}
}

#ifdef __x86_64__
typedef long long vector __attribute__((vector_size(16)));

/* The pieces of 16 bytes; `to` is aligned. Returns how many bytes they are. */
static uint32_t place_vectors(char *to, const char *from, uint32_t len)
{
	uint32_t at;

	if (!__builtin_cpu_supports("avx"))
		return 0;
	for (at = 0; len - at >= sizeof(vector); at += sizeof(vector)) {
		vector piece;

		memcpy(&piece, from + at, sizeof(piece));
		*(volatile vector *)(void *)(to + at) = piece;
	}
	/* The compiler may not move the stores that follow before the last volatile one. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return at;
}
#else
static uint32_t place_vectors(char *to, const char *from, uint32_t len)
{
	(void)to;
	(void)from;
	(void)len;
	return 0;
}
#endif

/*
 * Up to where `to` is aligned to 16 bytes, by ever larger pieces; less when the payload ends
 * before.
 */
static uint32_t place_head(char *to, const char *from, uint32_t len)
{
	uint32_t at = 0;

	for (uint32_t size = 1; size <= 8; size *= 2) {
		if (!((uintptr_t)(to + at) & size))
			continue;
		if (len - at < size)
			break;
		store_piece(to + at, from + at, size);
		at += size;
	}
	return at;
}

void sr_place(void *to, const void *from, uint32_t len)
{
	const char *source = from;
	char *target = to;
	uint32_t at = 0;

	if ((uintptr_t)target & 15)
		at = place_head(target, source, len);
	if (len - at >= 16)
		at += place_vectors(target + at, source + at, len - at);
	for (; len - at >= 8; at += 8)
		store_piece(target + at, source + at, 8);
	for (uint32_t size = 4; size; size /= 2) {
		if (len - at < size)
			continue;
		store_piece(target + at, source + at, size);
		at += size;
	}
}
