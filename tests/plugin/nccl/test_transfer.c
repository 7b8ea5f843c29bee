/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of every awkward size arrive whole; one larger than its receive is cut to it, as NCCL's
 * own transport does.
 */
#include "tests/plugin/nccl/rig.h"

static void check_cut(struct rig *rig, struct rig_pair *pair, size_t posted, size_t sent)
{
	uint8_t *from = malloc(sent), *to = calloc(1, sent);
	void *from_mr = rig_reg(rig, pair->send, from, sent),
	     *to_mr = rig_reg(rig, pair->recv, to, sent);
	void *send, *recv;
	int sent_size = -1, got = -1;

	rig_fill(from, sent, 99);
	recv = rig_irecv(rig, pair->recv, to, posted, 1, to_mr);
	send = rig_isend(rig, pair->send, from, sent, 1, from_mr);
	rig_wait(rig, send, &sent_size);
	rig_wait(rig, recv, &got);
	CHECK((size_t)got == posted && (size_t)sent_size == posted, "%d and %d of %zu posted", got,
	      sent_size, posted);
	CHECK(rig_differ(to, posted, 99) == posted, "wrong bytes");
	for (size_t i = posted; i < sent; i++)
		CHECK(to[i] == 0, "byte %zu behind the posted %zu was written", i, posted);
	OK(rig->plugin.dereg(pair->send, from_mr));
	OK(rig->plugin.dereg(pair->recv, to_mr));
	free(from);
	free(to);
}

/* Registered once, empty: NCCL sends such messages with a real buffer behind them. */
static void check_empty(struct rig *rig, struct rig_pair *pair)
{
	uint8_t byte[2] = { 3, 4 };
	void *from_mr = rig_reg(rig, pair->send, &byte[0], 1),
	     *to_mr = rig_reg(rig, pair->recv, &byte[1], 1);

	for (int i = 0; i < 600; i++) {
		void *recv = rig_irecv(rig, pair->recv, &byte[1], 1, 0, to_mr);
		void *send = rig_isend(rig, pair->send, &byte[0], 0, 0, from_mr);
		int sent = -1, got = -1;

		rig_wait(rig, send, &sent);
		rig_wait(rig, recv, &got);
		CHECK(sent == 0 && got == 0 && byte[1] == 4, "sizes %d and %d", sent, got);
	}
	OK(rig->plugin.dereg(pair->send, from_mr));
	OK(rig->plugin.dereg(pair->recv, to_mr));
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 0,    1,     7,     8,        64,       127,     128,
					129,  255,   1023,  1024,     1025,     4095,    4096,
					4097, 65535, 65536, 65537,    1,        0,       3,
					511,  12345, 99999, 1u << 20, 1234567u, 3u << 20 };
	struct rig rig;
	struct rig_pair pair;

	rig_expect_calm();
	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		rig_exchange(&rig, &pair, sizes[i]);
	check_empty(&rig, &pair);
	check_cut(&rig, &pair, 100, 101);
	check_cut(&rig, &pair, 1, 70000);
	check_cut(&rig, &pair, 0, 4096);
	check_cut(&rig, &pair, 65536, 200000);
	rig_exchange(&rig, &pair, 4096);
	rig_check_calm();
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
