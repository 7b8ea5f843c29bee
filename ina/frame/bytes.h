/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - big-endian integers at any address */
#ifndef INA_BYTES_H
#define INA_BYTES_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the conversions below swap");

#ifdef __bpf__ /* its compiler would load byte by byte; there is no library */
static inline uint16_t ina_get16(const void *at)
{
	return __builtin_bswap16(*(const uint16_t *)at);
}

static inline uint32_t ina_get32(const void *at)
{
	return __builtin_bswap32(*(const uint32_t *)at);
}

static inline void ina_put16(void *at, uint16_t v)
{
	*(uint16_t *)at = __builtin_bswap16(v);
}

static inline void ina_put32(void *at, uint32_t v)
{
	*(uint32_t *)at = __builtin_bswap32(v);
}
#else
#include <string.h>

static inline uint16_t ina_get16(const void *at)
{
	uint16_t v;

	memcpy(&v, at, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t ina_get32(const void *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return __builtin_bswap32(v);
}

static inline void ina_put16(void *at, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(at, &v, sizeof(v));
}

static inline void ina_put32(void *at, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(at, &v, sizeof(v));
}
#endif

/*
 * An Ethernet address as a number, its bytes as they lie. Read as it is written: a load of what was
 * just stored in other pieces waits until that has reached the cache.
 */
static inline uint64_t ina_get_mac(const uint8_t mac[6])
{
	uint32_t first;
	uint16_t rest;

	__builtin_memcpy(&first, mac, sizeof(first));
	__builtin_memcpy(&rest, mac + 4, sizeof(rest));
	return first | (uint64_t)rest << 32;
}

/* In the same pieces. */
static inline void ina_copy_mac(uint8_t to[6], const uint8_t from[6])
{
	__builtin_memcpy(to, from, 4);
	__builtin_memcpy(to + 4, from + 4, 2);
}

#endif
