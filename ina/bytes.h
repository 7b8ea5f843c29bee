/* SPDX-License-Identifier: BSD-3-Clause */
/* bytes.h - big-endian integers at any address */
#ifndef INA_BYTES_H
#define INA_BYTES_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the conversions below swap");

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
