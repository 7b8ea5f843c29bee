/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the other side may write into shared memory or send. The first byte chooses: a message, a
 * header, a request, or a ring between whose calls the other bytes go into the indices and entries.
 * What is taken must be safe to use; what is not leaves nothing changed.
 */
#include "base/check.h"
#include "ina/host/shm/message.h"
#include "ina/host/shm/ring.h"

#include <errno.h>
#include <stdatomic.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_message(const uint8_t *data, size_t size)
{
	struct ina_shm_message *m = calloc(1, sizeof(*m));
	const char *why = NULL;

	memcpy(m, data, size < sizeof(*m) ? size : sizeof(*m));
	for (int from_client = 0; from_client < 2; from_client++) {
		int err = ina_shm_message_check(m, size, from_client, &why);

		CHECK(err == 0 || (err == -EPROTO && why));
		if (err)
			continue;
		CHECK_INT(size, ina_shm_message_bytes(m->type));
		if (m->type == INA_SHM_CREATE)
			CHECK(m->create.ranks <= HA_INA_RANKS &&
			      strnlen(m->create.name, INA_SHM_NAME) < INA_SHM_NAME);
		if (m->type == INA_SHM_JOINED)
			CHECK(m->joined.rank < m->joined.ranks && m->joined.ranks <= HA_INA_RANKS);
		if (m->type == INA_SHM_STATE || m->type == INA_SHM_REFUSED)
			CHECK(m->state.result < 0 &&
			      !memchr(m->state.text, '\n', strlen(m->state.text)));
	}
	free(m);
}

static void check_header(const uint8_t *data, size_t size)
{
	struct ina_shm_header h;
	uint32_t segments;
	const char *why = NULL;
	uint64_t bytes;

	if (size < sizeof(h) + sizeof(bytes))
		return;
	memcpy(&h, data, sizeof(h));
	memcpy(&bytes, data + sizeof(h), sizeof(bytes));
	if (ina_shm_header_check(&h, bytes, &segments, &why))
		CHECK(why);
	else
		CHECK(segments && bytes == INA_SHM_BUFFER + (uint64_t)segments * HA_INA_SEGMENT);
}

static void check_request(const uint8_t *data, size_t size)
{
	struct ina_shm_request q;
	const uint64_t buffer = 3 * (uint64_t)HA_INA_SEGMENT;
	const char *why = NULL;

	if (size < sizeof(q))
		return;
	memcpy(&q, data, sizeof(q));
	if (ina_shm_request_check(&q, buffer, &why))
		CHECK(why);
	else
		CHECK(q.bytes && q.bytes <= HA_INA_SEGMENT && q.offset < buffer &&
		      q.offset + ina_shm_blocks(q.bytes) <= buffer && q.root < HA_INA_RANKS);
}

/* Each byte is an act; some take the next four with them. */
static void check_ring(const uint8_t *data, size_t size)
{
	struct ina_shm_ends *ends = calloc(1, sizeof(*ends));
	uint64_t *entries = calloc(8, 16), entry[2] = { 1, 2 };
	struct ina_shm_ring in, out;

	ina_shm_ring_init(&in, ends, entries, 8, 16);
	ina_shm_ring_init(&out, ends, entries, 8, 16);
	for (size_t i = 0; i < size; i++) {
		_Atomic uint32_t *word[] = { &ends->tail.value, &ends->head.value,
					     &ends->sleeps.value };
		uint32_t n = 0;
		int err = 0;

		switch (data[i] % 6) {
		case 0:
			err = ina_shm_ring_push(&in, entry);
			break;
		case 1:
			err = ina_shm_ring_pop(&out, entry);
			break;
		case 2:
			ina_shm_ring_bell(&in);
			break;
		case 3:
			ina_shm_ring_sleep(&out);
			break;
		default:
			memcpy(&n, data + i, size - i < 4 ? size - i : 4);
			atomic_store(word[data[i] / 6 % 3],
				     data[i] & 0x80 ? n
						    : atomic_load(word[data[i] / 6 % 3]) + n % 16);
			i += 4;
		}
		CHECK(err == 0 || err == 1 || err == -EAGAIN || err == -EPROTO);
		CHECK(!in.torn || ina_shm_ring_push(&in, entry) == -EPROTO);
		CHECK(!out.torn || ina_shm_ring_pop(&out, entry) == -EPROTO);
	}
	free(entries);
	free(ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const part[])(const uint8_t *data,
				    size_t size) = { check_message, check_header, check_request,
						     check_ring };

	if (size)
		part[data[0] % 4](data + 1, size - 1);
	return 0;
}
