/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's NIC refuses a write, because its key is wrong. On one rail alone: the message goes
 * over another, once. On two: the connection ends, with the line that says so, at the second
 * refusal, though a third rail is up. Again and again on one rail, while no message waits: the rail
 * is lost, the connection is not.
 */
#include "base/check.h"
#include "tests/base/lines.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/suspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE 4096
#define WRONG 0x5a5a5a5a
/* one rail of both ends, if it was notified in time; and each return of one on a busy machine */
#define REPLAYS_MAX 16

static struct pair p;
static struct pair_side from, to;

/* The receive is posted, and its clear-to-send is where the sender looks; now the keys in it are
 * wrong on these rails. */
static void post_spoilt(unsigned rails)
{
	const struct ha_send_slot *head = &p.send->slot[p.send->head % HA_SLOTS];
	uint64_t idx = p.send->head;
	struct ha_cts *cts = ha_send_cts(p.send, idx);
	void *data = to.data;
	size_t size = SIZE;
	int tag = 0;

	CHECK(!head->pending);
	from.req = to.req = NULL;
	for (int k = 0; !to.req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_irecv(p.recv, 1, &data, &size, &tag, &to.mr, false, &to.req), 0);
		pair_idle(&p, k);
	}
	CHECK(to.req);
	for (int k = 0;
	     __atomic_load_n(&cts->idx, __ATOMIC_ACQUIRE) != idx + 1 && k < PAIR_TRIES_MAX; k++) {
		int done;

		CHECK_INT(ha_test(to.req, &done, NULL), 0);
		pair_idle(&p, k);
	}
	for (unsigned i = 0; i < HA_MAX_RAILS; i++)
		if (rails & 1u << i)
			cts->rkey[i] = WRONG;
	for (int k = 0; !from.req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(p.send, from.data, SIZE, 0, from.mr, &from.req), 0);
		pair_idle(&p, k);
	}
	CHECK(from.req);
}

/* Until both are done, or the sender has its error, which is returned; the receiver may learn of
 * the end first. */
static int await_outcome(void)
{
	int err = 0, result = 0;

	from.done = to.done = 0;
	for (int k = 0; !err && !(from.done && (to.done || result)) && k < PAIR_TRIES_MAX; k++) {
		if (!to.done && !result)
			result = ha_test(to.req, &to.done, NULL);
		if (!from.done)
			err = ha_test(from.req, &from.done, NULL);
		pair_idle(&p, k);
	}
	CHECK(err || from.done);
	return err ? err : result;
}

/* The driver changes both of these, at any time: a look that decides nothing but whether to
 * wait. */
#ifdef __SANITIZE_THREAD__
__attribute__((noinline, no_sanitize_thread))
#endif
static void
look_at_rails(bool *all_up, unsigned *first)
{
	unsigned data = (1u << p.send->b.balance.ndata) - 1;

	*all_up = (p.send->b.active & data) == data && (p.recv->b.active & data) == data;
	*first = p.send->b.balance.first;
}

/* Messages flow until all data rails are up at both ends; which of them carries the next? */
static unsigned all_up(void)
{
	unsigned first;
	bool up;

	look_at_rails(&up, &first);
	for (int k = 0; !up && k < PAIR_TRIES_MAX; k++) {
		pair_messages(&p, &from, &to, 1, SIZE);
		pair_idle(&p, k);
		look_at_rails(&up, &first);
	}
	CHECK(up);
	return first;
}

static void open_pair(int nmore)
{
	pair_open(&p, nmore);
	from.data = pair_alloc(SIZE);
	to.data = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr(&p.send->b, from.data, SIZE, HA_MEM_HOST, 0, -1, 0, &from.mr), 0);
	CHECK_INT(ha_reg_mr(&p.recv->b, to.data, SIZE, HA_MEM_HOST, 0, -1, 0, &to.mr), 0);
	pair_messages(&p, &from, &to, 10, SIZE);
	all_up();
}

static void close_pair(void)
{
	ha_dereg_mr(&p.send->b, from.mr);
	ha_dereg_mr(&p.recv->b, to.mr);
	pair_close(&p);
}

static void on_one_rail(void)
{
	open_pair(1);
	for (int i = 0; i < 3; i++) {
		unsigned first = all_up();

		memset(to.data, 0, SIZE);
		memset(from.data, 'a' + i, SIZE);
		post_spoilt(1u << first);
		CHECK_INT(await_outcome(), 0);
		CHECK(!memcmp(from.data, to.data, SIZE));
		pair_messages(&p, &from, &to, 100, SIZE);
		all_up(); /* its next incarnation has come */
	}
	close_pair();
}

/* The second refusal is the end, after the time in which a peer that closes would have said so. On
 * a busy machine the rails may be up again before that, with keys that the receiver has sent anew:
 * then the message arrives. */
static void on_all(int rails)
{
	int err;

	lines_catch();
	open_pair(rails - 1);
	memset(to.data, 0, SIZE);
	memset(from.data, 'z', SIZE);
	post_spoilt(~0u);
	err = await_outcome();
	if (!err) {
		CHECK(!memcmp(from.data, to.data, SIZE));
		CHECK(!lines_contain("lost: "));
	} else {
		CHECK_INT(err, -EIO);
		CHECK(lines_contain("lost: work request failed on rail"));
		CHECK(lines_contain("remote access error"));
		CHECK(lines_count("-> ") && lines_count(" replayed, ") <= REPLAYS_MAX);
	}
	close_pair();
}

static void while_quiet(void)
{
	const struct ibv_wc refusal = { .status = IBV_WC_REM_ACCESS_ERR };
	struct ha_bundle *b;

	open_pair(1);
	b = &p.send->b;
	for (int i = 0; i < 3; i++) {
		unsigned other = !all_up();
		int k = 0;

		while (ha_bundle_enter(b) == HA_NOT_NOW && k < PAIR_TRIES_MAX)
			pair_idle(&p, k++);
		CHECK(k < PAIR_TRIES_MAX);
		ha_rail_failed(b, &b->rail[other], &refusal, 0);
		ha_bundle_leave(b);
		/* until its next incarnation there is no message: nothing moves on */
		usleep(20000);
	}
	pair_messages(&p, &from, &to, 10, SIZE);
	close_pair();
}

int main(int argc, char **argv)
{
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	setenv("SOFTROCE_DEVICES", "127.67.0.0/24,127.68.0.0/24,127.69.0.0/24", 1);
	CHECK_INT(argc, 2);
	if (!strcmp(argv[1], "one"))
		on_one_rail();
	else if (!strcmp(argv[1], "all"))
		on_all(2);
	else if (!strcmp(argv[1], "three"))
		on_all(3);
	else
		while_quiet();
	printf("%s: ok\n", argv[1]);
	return 0;
}
