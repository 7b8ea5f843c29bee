/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Without the service thread (HA_NCCL_USE_PROGRESS_THREAD=0) the program's calls make the driver's
 * rounds, each kind of call by itself: a rail is lost, and until it is back the program has one
 * call to make, again and again, with no request outstanding that it could test. The failover made
 * no further round then.
 */
#include "base/check.h"
#include "tests/plugin/pair.h"

#include "plugin/bundle.h"
#include "plugin/transfer/guard.h"
#include "plugin/transfer/suspect.h"

#include <stdlib.h>
#include <string.h>

#define SIZE 4096

static struct pair p;
static char *from, *to;
static struct ha_mr *from_mr, *to_mr;

static void open_pair(bool one_sided)
{
	if (one_sided)
		pair_open_one_sided(&p, 0);
	else
		pair_open(&p, 0);
	from = pair_alloc(SIZE);
	to = pair_alloc(SIZE);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.send, from, SIZE, HA_MEM_HOST, 0, -1, 0,
			    &from_mr),
		  0);
	CHECK_INT(ha_reg_mr((struct ha_bundle *)p.recv, to, SIZE, HA_MEM_HOST, 0, -1, 0, &to_mr),
		  0);
}

static void close_pair(void)
{
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)p.send, from_mr), 0);
	CHECK_INT(ha_dereg_mr((struct ha_bundle *)p.recv, to_mr), 0);
	pair_close(&p);
}

/* The only rail there is, and it comes back on the same port. */
static void lose_rail(struct ha_bundle *b)
{
	CHECK(ha_bundle_enter(b) != HA_NOT_NOW);
	CHECK_INT(b->active, 1);
	ha_rail_suspect(b, &b->rail[0], HA_CAUSE_QUEUE_ERROR, "the test says so");
	CHECK_INT(b->active, 0);
	ha_bundle_leave(b);
}

static struct ha_request *post_receive(void)
{
	struct ha_request *req = NULL;
	void *data = to;
	size_t size = SIZE;
	int tag = 0;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_irecv(p.recv, 1, &data, &size, &tag, &to_mr, false, &req), 0);
		pair_idle(&p, k);
	}
	CHECK(req);
	return req;
}

static struct ha_request *send_one(void)
{
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_isend(p.send, from, SIZE, 0, from_mr, &req), 0);
		pair_idle(&p, k);
	}
	CHECK(req);
	return req;
}

static struct ha_request *put_one(void)
{
	static const char record[HA_RECORD_SIZE] = { 1 };
	const struct ha_put put = { .data = from,
				    .size = SIZE,
				    .mr = from_mr,
				    .window = 0,
				    .offset = 0,
				    .record = record };
	struct ha_request *req = NULL;

	for (int k = 0; !req && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_put(p.send, &put, &req), 0);
		pair_idle(&p, k);
	}
	CHECK(req);
	return req;
}

static void take_one(void)
{
	char record[HA_RECORD_SIZE];
	bool got = false;

	for (int k = 0; !got && k < PAIR_TRIES_MAX; k++) {
		CHECK_INT(ha_take(p.recv, record, &got), 0);
		pair_idle(&p, k);
	}
	CHECK(got);
}

static void compare_ends(char byte)
{
	CHECK(to[0] == byte && to[SIZE - 1] == byte);
}

/* The receive is there, and the sender has nothing to call but isend. */
static void check_isend(void)
{
	struct ha_request *recv, *send;

	open_pair(false);
	memset(from, 's', SIZE);
	recv = post_receive();
	lose_rail((struct ha_bundle *)p.send);
	send = send_one();
	pair_finish(&p, send);
	pair_finish(&p, recv);
	compare_ends('s');
	close_pair();
}

/* No receive is open, and the receiver has nothing to call but irecv. */
static void check_irecv(void)
{
	struct ha_request *recv, *send;

	open_pair(false);
	memset(from, 'r', SIZE);
	lose_rail((struct ha_bundle *)p.recv);
	recv = post_receive();
	send = send_one();
	pair_finish(&p, send);
	pair_finish(&p, recv);
	compare_ends('r');
	close_pair();
}

/* The window is known, there is room, and the sender has nothing to call but put. */
static void check_put(void)
{
	open_pair(true);
	memset(from, '1', SIZE);
	CHECK_INT(ha_offer(p.recv, 0, to_mr), 0);
	pair_finish(&p, put_one());
	take_one();
	compare_ends('1');
	memset(from, '2', SIZE);
	lose_rail((struct ha_bundle *)p.send);
	pair_finish(&p, put_one());
	take_one();
	compare_ends('2');
	close_pair();
}

int main(void)
{
	setenv("SOFTROCE_DEVICES", "127.192.41.0/24", 1); /* no second device */
	setenv("HA_NCCL_USE_PROGRESS_THREAD", "0", 1);
	setenv("HA_NCCL_POLL_STANDBY_INTERVAL", "2", 1);
	setenv("HA_NCCL_HEARTBEAT_MS", "60000", 1); /* a busy machine breaks no path */
	setenv("HA_NCCL_RTO_MS", "60000", 1);
	setenv("HA_NCCL_SILENCE_MS", "0", 1);
	check_isend();
	check_irecv();
	check_put();
	return 0;
}
