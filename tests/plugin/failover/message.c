/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/plugin/failover/message.h"

#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

#define OFFSETS (1u << 20) /* places in the noise where a message may begin */

static uint8_t *noise;

void message_prepare(size_t largest)
{
	size_t size = OFFSETS + largest + 8;

	noise = malloc(size);
	if (!noise)
		abort();
	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t x = ha_splitmix64(i);

		memcpy(noise + i, &x, 8);
	}
}

size_t message_room(size_t largest)
{
	return largest + 64 * MESSAGE_BUFFERS;
}

static size_t size_of(uint64_t dice, size_t largest)
{
	static const size_t sizes[16] = { 8,      8,      64,      200,    1000,  1024,
					  4096,   4097,   10000,   40000,  65536, 65537,
					  200000, 300000, 1 << 20, 4 << 20 };
	size_t size = dice % 64 ? sizes[dice / 64 % 14] : sizes[dice / 64 % 16];

	if (dice % 50 == 7)
		return 0;
	return size < largest ? size : largest;
}

void message_make(struct message *m, unsigned lane, uint64_t number, size_t largest)
{
	uint64_t dice = ha_splitmix64(number << 8 | lane);
	size_t at = 0;

	memset(m, 0, sizeof(*m));
	m->n = dice % 8 == 0 ? 2 + dice / 8 % (MESSAGE_BUFFERS - 1) : 1;
	m->turn = dice / 64 % m->n;
	m->optional = m->n == 1 && dice % 8 == 1;
	m->fresh = !m->optional && dice / 512 % 8 == 3;
	for (unsigned i = 0; i < m->n; i++) {
		uint64_t own = ha_splitmix64(dice + i);

		m->size[i] = size_of(own >> 8, largest / m->n);
		m->slack[i] = own % 4 ? 0 : 40;
		if (m->optional) {
			m->size[i] = 8 + own % (MESSAGE_OPTIONAL - 8);
			m->slack[i] = 0;
		}
		m->bytes[i] = noise + (own >> 16) % OFFSETS;
		m->at[i] = at;
		at += m->size[i] + m->slack[i];
	}
}

size_t message_differ(const struct message *m, unsigned i, const uint8_t *p)
{
	size_t size = m->size[i], k = 0;

	if (memcmp(p, m->bytes[i], size)) {
		while (p[k] == m->bytes[i][k])
			k++;
		return k;
	}
	while (k < m->slack[i] && p[size + k] == MESSAGE_POISON)
		k++;
	return size + k;
}

/* The NIC's thread may be writing: no race to report. */
__attribute__((no_sanitize("thread"))) bool message_is_there(const struct message *m, unsigned i,
							     const uint8_t *p)
{
	const volatile uint8_t *now = p;

	for (size_t k = 0; k < m->size[i]; k++)
		if (now[k] != m->bytes[i][k])
			return false;
	return true;
}
