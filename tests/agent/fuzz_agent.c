/* SPDX-License-Identifier: BSD-3-Clause */
/* What hostile processes may send to the registration socket: the input is cut into pieces that go
 * to three peers in turn, two sockets of one process and one of another, and now and then one hangs
 * up. The books must be right after every piece. */
#include "agent/session.h"

#include "base/check.h"

#include <unistd.h>

#define PEERS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct mpib_hint_shm shm;
static struct ha_slots slots;
static struct ha_session session[PEERS];
static struct ha_owner *owner[PEERS];

static void open_session(int i)
{
	memset(&session[i], 0, sizeof(session[i]));
	owner[i] = ha_owner_get(&slots, i < 2 ? getpid() : 0, 0);
	CHECK(owner[i]);
}

static void hang_up(int i)
{
	ha_owner_hang_up(&slots, owner[i]);
}

static void answers_are_whole(const struct ha_session *x)
{
	struct mpib_msg_header h;

	for (size_t at = 0; at < x->out_len; at += h.length) {
		memcpy(&h, x->out + at, sizeof(h));
		CHECK(h.magic == MPIB_REG_MAGIC && h.type == MPIB_MSG_RESPONSE);
		CHECK((h.length == 12 || h.length == 16) && at + h.length <= x->out_len);
	}
}

/* A third of the pieces is a good message around the input's bytes, else the magic number would be
 * the fuzzer's only work. */
static size_t make_input(uint8_t how, const uint8_t *piece, size_t len, uint8_t out[64])
{
	struct mpib_msg_header h = { MPIB_REG_MAGIC, (how & 32) ? 12 : 28,
				     (how & 32) ? MPIB_MSG_DEREGISTER : MPIB_MSG_REGISTER, 0 };

	memset(out, how >> 6, 64);
	if (!(how & 16)) {
		memcpy(out, piece, len);
		return len;
	}
	memcpy(out, &h, sizeof(h));
	memcpy(out + sizeof(h), piece, len < 20 ? len : 20);
	return h.length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ha_session_counts counts = { 0 };

	memset(&shm, 0, sizeof(shm));
	/* left by a former agent */
	memcpy(shm.entries, data, size < sizeof(shm.entries) ? size : sizeof(shm.entries));
	ha_slots_open(&slots, &shm, 0);
	for (int i = 0; i < PEERS; i++)
		open_session(i);
	CHECK(ha_slots_consistent(&slots));
	while (size > 1) {
		uint8_t how = data[0], piece[64];
		int i = how % PEERS;
		size_t len = data[1] % 48u, bytes;

		data += 2;
		size -= 2;
		len = len < size ? len : size;
		bytes = make_input(how, data, len, piece);
		data += len;
		size -= len;
		if (ha_session_feed(&session[i], &slots, owner[i], &counts, piece, bytes) < 0 ||
		    how == 255) {
			hang_up(i);
			open_session(i);
		}
		answers_are_whole(&session[i]);
		if (how & 8)
			session[i].out_len = 0;
		CHECK(ha_slots_consistent(&slots));
	}
	for (int i = 0; i < PEERS; i++)
		hang_up(i);
	ha_slots_expire(&slots, HA_SLOTS_GRACE_NS);
	CHECK(ha_slots_consistent(&slots));
	ha_slots_close(&slots);
	return 0;
}
