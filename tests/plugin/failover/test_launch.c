/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the operator reads of a connection that begins without protection; what becomes of a rail
 * whose device was lost meanwhile; and what devices say later: a port that went down, or is back.
 */
#include "base/check.h"
#include "base/clock.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"
#include "tests/plugin/ends.h"

#include <stdlib.h>
#include <string.h>

#define MS HA_NS_PER_MS
#define SPARE 1

/* ---- not protected ---- */

struct host {
	const char *nics; /* NCCL_IB_HCA; NULL: both */
	bool no_backup;   /* HA_NCCL_ENABLE_BACKUP=0 */
};

static struct ha_ctx *open_host(struct world *w, int i, const struct host *host)
{
	struct ha_config config = w->config;
	struct ha_ctx_params params = { .config = &config,
					.verbs = &w->dummy[i].fake.ops,
					.clock = &w->clock.clock,
					.oob = &oob_mem_ops,
					.oob_net = &w->net };
	struct ha_ctx *ctx;

	config.enable_backup = !host->no_backup;
	if (host->nics)
		strcpy(config.ib_hca, host->nics);
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	return ctx;
}

/* The listener's and the connector's lines about one connection are caught. */
static void connect_hosts(const struct host *listener, const struct host *connector)
{
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;
	struct world w;

	world_prepare(&w);
	lines_catch();
	w.a = open_host(&w, 0, listener);
	w.b = open_host(&w, 1, connector);
	world_connect(&w, &listen, &send, &recv);
	ha_close_send(send);
	ha_close_recv(recv);
	ha_close_listen(listen);
	world_close(&w);
}

static void why_it_is_not_protected(void)
{
	const struct host both = { 0 }, off = { .no_backup = true }, one = { .nics = "=dummy0" };

	connect_hosts(&off, &both);
	CHECK_INT(lines_count("HA_NCCL_ENABLE_BACKUP is 0 here"), 1);
	CHECK_INT(lines_count("the peer has no failover, or has it disabled"), 1);
	connect_hosts(&off, &off);
	CHECK_INT(lines_count("HA_NCCL_ENABLE_BACKUP is 0 here"), 2);
	connect_hosts(&one, &one);
	CHECK_INT(lines_count("no second device here (`ha topo`)"), 2);
}

/* One second NIC, at either end, can stand by for both. */
static void one_end_has_a_second_device(void)
{
	const struct host both = { 0 }, one = { .nics = "=dummy0" };

	connect_hosts(&one, &both);
	CHECK(!lines_contain("a broken path"));
}

/* ---- devices ---- */

static struct ha_topo_device topo;
static struct ha_device device[2];
static struct ha_ctx ctx = { .clock = &ha_clock_live, .devices = device, .nports = 2 };
static struct ha_bundle *bundle;

/* A data rail on device 0 and two spares, of which the first is on device 1. */
static struct ha_bundle *make_bundle(bool is_send)
{
	struct ha_bundle *b = new_end(is_send);

	CHECK(b);
	b->ctx = &ctx;
	b->is_send = is_send;
	b->nrails = 3;
	b->balance.ndata = 1;
	b->active = 1;
	b->terms.flags = HA_FLAG_FAILOVER | HA_FLAG_PAIRS;
	b->schedule->due = UINT64_MAX;
	atomic_store(&b->attention, HA_ATTN_DRIVE); /* there is no loop to wake */
	for (int i = 0; i < 2; i++) {
		device[i] = (struct ha_device) { .ctx = &ctx, .topo = &topo, .up = true };
		pthread_mutex_init(&device[i].lock, NULL);
	}
	for (unsigned i = 0; i < 3; i++) {
		b->rail[i].index = (uint8_t)i;
		b->rail[i].state = i ? HA_RAIL_DOWN : HA_RAIL_UP;
		b->rail[i].dev = &device[i == SPARE];
		b->failover->ctl[i].join.attempts = 1;
		b->failover->ctl[i].join.retry_at = UINT64_MAX;
	}
	LIST_INSERT_HEAD(&ctx.bundles, b, entry);
	bundle = b;
	return b;
}

static void free_bundle(void)
{
	LIST_INIT(&ctx.bundles);
	free(bundle);
}

/* Every rail on the port is given up at the next step, and no other; without failover the port may
 * be back before the queue pair gives up. */
static void port_goes_down(void)
{
	struct ha_bundle *b = make_bundle(true);

	ha_failover_device(&device[1], HA_CAUSE_PORT_DOWN);
	CHECK_INT(b->schedule->due, 0);
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_UP);
	lines_catch();
	ha_failover_device(&device[0], HA_CAUSE_PORT_DOWN);
	CHECK_INT(b->rail[0].state, HA_RAIL_UP); /* its owner may be inside */
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_FENCING);
	CHECK_INT(b->rail[0].loss.cause, HA_CAUSE_PORT_DOWN);
	CHECK(lines_contain("its port went down"));
	b->rail[0].state = HA_RAIL_UP; /* once */
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_UP);
	free_bundle();

	b = make_bundle(true);
	b->terms.flags = 0;
	ha_failover_device(&device[0], HA_CAUSE_PORT_DOWN);
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_UP);
	CHECK(b->schedule->due == UINT64_MAX);
	ha_failover_device(&device[0], HA_CAUSE_DEVICE_FAILED);
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_FENCING);
	free_bundle();
}

static void receive_queue_fails(void)
{
	struct ibv_srq srq[2];
	struct ibv_qp qp;
	struct ha_bundle *b = make_bundle(false);

	b->rail[0].srq = &srq[0];
	ha_failover_srq(&ctx, &srq[0]); /* nothing of it takes receives there */
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_UP);
	b->rail[0].qp = &qp;
	ha_failover_srq(&ctx, &srq[1]);
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].state, HA_RAIL_UP);
	ha_failover_srq(&ctx, &srq[0]);
	CHECK_INT(b->schedule->due, 0);
	ha_device_news_take(b);
	CHECK_INT(b->rail[0].loss.cause, HA_CAUSE_QUEUE_ERROR);
	free_bundle();
}

/* A data rail waits for its own port, a spare for any. A sender tries at once, a receiver says so
 * to the sender: for one of its spares, any of which may be offered. */
static void port_is_back(void)
{
	struct ha_bundle *b = make_bundle(true);

	b->active = 0;
	b->rail[0].state = HA_RAIL_DOWN;
	ha_failover_device_back(&device[1]);
	CHECK_INT(b->schedule->due, 0);
	ha_device_news_take(b);
	CHECK(b->failover->ctl[0].join.retry_at == UINT64_MAX);
	CHECK_INT(b->failover->ctl[1].join.retry_at, 0);
	CHECK_INT(b->failover->ctl[2].join.retry_at, 0);
	CHECK(b->failover->spares.improve);
	ha_failover_device_back(&device[0]);
	ha_device_news_take(b);
	CHECK_INT(b->failover->ctl[0].join.retry_at, 0);
	b->failover->spares.improve = false; /* once */
	b->failover->ctl[0].join.retry_at = UINT64_MAX;
	ha_device_news_take(b);
	CHECK(b->failover->ctl[0].join.retry_at == UINT64_MAX);
	CHECK(!b->failover->spares.improve);
	for (unsigned i = 0; i < 3; i++)
		CHECK_INT(b->failover->ctl[i].out.due, 0); /* it has nobody to notify */
	free_bundle();

	b = make_bundle(false);
	b->rail[0].state = HA_RAIL_DOWN;
	b->rail[SPARE].state = HA_RAIL_UP;
	b->active = 1 << SPARE;
	ha_failover_device_back(&device[0]);
	ha_device_news_take(b);
	CHECK_INT(b->failover->ctl[0].out.due, HA_SEND(RAIL_BACK));
	CHECK_INT(b->failover->ctl[1].out.due, 0); /* it is up */
	CHECK_INT(b->failover->ctl[2].out.due, HA_SEND(RAIL_BACK));
	free_bundle();

	b = make_bundle(false);
	ha_failover_device_back(&device[1]);
	ha_device_news_take(b);
	CHECK_INT(b->failover->ctl[1].out.due, HA_SEND(RAIL_BACK));
	CHECK_INT(b->failover->ctl[2].out.due, 0);
	free_bundle();
}

/* A port that runs at another speed than before: the shares of the data rails on it are found
 * anew. */
static void speed_changes(void)
{
	struct ha_bundle *b = make_bundle(true);

	ha_failover_speed(&device[1]); /* a spare has none */
	CHECK(!b->balance.speed_changed);
	CHECK(b->schedule->due == UINT64_MAX);
	ha_failover_speed(&device[0]);
	CHECK(b->balance.speed_changed);
	CHECK_INT(b->schedule->due, 0);
	free_bundle();
}

/* ---- launched ---- */

/* What happened to a rail while the connection was made is found at once: its port went down, or
 * its shared receive queue was replaced. Spares follow the data rails. */
static void faults_before_the_launch(void)
{
	static const enum ha_event_cause wanted[] = { HA_CAUSE_NONE, HA_CAUSE_QUEUE_ERROR,
						      HA_CAUSE_PORT_DOWN };

	for (unsigned i = 0; i < 3; i++) {
		static struct ibv_qp qp = { .qp_num = 9 };
		struct ha_opening opening = { .srq = NULL };
		struct ha_bundle *b = make_bundle(true);
		struct ibv_srq old;

		b->nrails = 1;
		b->active = 0;
		b->rail[0].state = HA_RAIL_NONE;
		b->rail[0].qp = &qp;
		b->rail[0].srq = i == 1 ? &old : NULL;
		device[0].now = &opening;
		device[0].up = i != 2;
		device[0].ports = 2;
		b->failover->spares.peer_ports = 1;
		if (i == 1)
			b->terms.flags |= HA_FLAG_ACK_MEMORY;
		ha_failover_launch(b);
		CHECK_INT(b->failover->ctl[0].fence_wanted, wanted[i]);
		CHECK_INT(b->await, i == 1 ? HA_AWAIT_DELIVERY : 0);
		CHECK_INT(!!(atomic_load(&b->attention) & HA_ATTN_DELIVERY), i == 1);
		CHECK_INT(b->rail[0].state, HA_RAIL_UP);
		CHECK_INT(b->active, 1);
		CHECK_INT(b->registered.rails, 1);
		CHECK_INT(b->nrails, HA_MAX_RAILS);
		for (unsigned k = 1; k < b->nrails; k++) {
			CHECK_INT(b->rail[k].index, k);
			CHECK_INT(b->rail[k].state, HA_RAIL_DOWN);
			/* there was none to compare */
			CHECK_INT(b->failover->ctl[k].compare.stage, HA_COMPARE_SETTLED);
		}
		CHECK_INT(b->schedule->due, 0);
		free_bundle();
	}
}

static void what_a_cause_is_called(void)
{
	static const struct {
		enum ha_event_cause cause;
		const char *text;
	} causes[] = { { HA_CAUSE_PORT_DOWN, "its port went down" },
		       { HA_CAUSE_PORT_CHANGED, "its port has another address now" },
		       { HA_CAUSE_DEVICE_FAILED, "its device has failed" },
		       { HA_CAUSE_QUEUE_ERROR, "one of its queues is in error" },
		       { HA_CAUSE_SIBLING, "another connection has just lost the same port" } };

	for (unsigned i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		struct ha_bundle *b = make_bundle(true);

		lines_catch();
		ha_failover_device(&device[0], causes[i].cause);
		ha_device_news_take(b);
		CHECK_INT(b->rail[0].loss.cause, causes[i].cause);
		CHECK_INT(lines_count(causes[i].text), 1);
		free_bundle();
	}
}

int main(void)
{
	why_it_is_not_protected();
	one_end_has_a_second_device();
	port_goes_down();
	receive_queue_fails();
	port_is_back();
	speed_changes();
	faults_before_the_launch();
	what_a_cause_is_called();
	return 0;
}
