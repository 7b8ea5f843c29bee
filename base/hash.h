/* SPDX-License-Identifier: BSD-3-Clause */
/* hash.h - FNV-1a with 64 bits, of bytes: to recognise things, not against who chooses them */
#ifndef HA_BASE_HASH_H
#define HA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HA_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t ha_hash_word(uint64_t hash, uint64_t word)
{
	return (hash ^ word) * UINT64_C(0x100000001b3);
}

static inline uint64_t ha_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = ha_hash_word(hash, at[i]);
	return hash;
}

/* Without the 0 at its end. */
static inline uint64_t ha_hash_text(uint64_t hash, const char *text)
{
	return ha_hash_bytes(hash, text, strlen(text));
}

#endif
