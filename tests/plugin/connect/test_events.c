/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices say out of turn, and what the end of a socket means: who is notified, and what the
 * log says. */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/failover/failover.h"
#include "plugin/report/journal.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>

static struct world w;
static struct ha_listen *listen;
static struct ha_send *send;
static struct ha_recv *recv;

static void open_connection(void)
{
	world_open(&w);
	world_connect(&w, &listen, &send, &recv);
	lines_catch();
}

/* One post, then what the connection says. */
static int send_error(void)
{
	struct ha_request *req;

	return ha_isend(send, NULL, 0, 0, NULL, &req);
}

/* A port that goes down may come back before the queue pairs give up; without failover they decide.
 * A device that has failed does not. */
static void port_and_device(void)
{
	open_connection();
	dummy_event(&w.dummy[1], IBV_EVENT_GID_CHANGE, NULL);
	world_run(&w, 10);
	CHECK(lines_contain("GID"));
	dummy_event(&w.dummy[1], IBV_EVENT_DEVICE_FATAL, NULL);
	world_run(&w, 10);
	CHECK_INT(send_error(), -EIO);
	CHECK_INT(send_error(), -EIO);
	CHECK_INT(recv->b.error, 0); /* another host's device */
	/* Nothing new on it. */
	CHECK(atomic_load(&send->b.rail[0].dev->failed));
	world_close(&w);
}

static void events_of_queue_pairs(void)
{
	open_connection();
	dummy_event(&w.dummy[1], IBV_EVENT_COMM_EST, send->b.rail[0].qp);
	dummy_event(&w.dummy[1], IBV_EVENT_QP_LAST_WQE_REACHED, send->b.rail[0].qp);
	world_run(&w, 10);
	CHECK_INT(lines_warnings(), 0);
	dummy_event(&w.dummy[1], IBV_EVENT_QP_ACCESS_ERR, send->b.rail[0].qp);
	world_run(&w, 10);
	CHECK(lines_contain(send->b.name));
	CHECK(lines_contain("access error"));
	world_run(&w, 2000); /* a queue that accounts for nothing is given up */
	CHECK_INT(send_error(), -EIO);
	world_close(&w);
	open_connection();
	w.dummy[1].events[w.dummy[1].nevents++] =
		(struct ibv_async_event) { .event_type = IBV_EVENT_CQ_ERR,
					   .element.cq = send->b.rail[0].cq };
	w.dummy[1].events[w.dummy[1].nevents++] =
		(struct ibv_async_event) { .event_type = IBV_EVENT_SRQ_ERR,
					   .element.srq = send->b.rail[0].dev->now->srq };
	world_run(&w, 10);
	CHECK(lines_contain("shared receive queue error"));
	world_close(&w);
}

/* A port that gets another LID, or another GID: its queue pairs lead nowhere. One that keeps both
 * goes on. */
static void port_gets_another_address(void)
{
	static const enum ibv_event_type types[] = { IBV_EVENT_LID_CHANGE, IBV_EVENT_GID_CHANGE,
						     IBV_EVENT_SM_CHANGE };

	for (int i = 0; i < 3; i++) {
		struct fake_port *port = &w.dummy[1].devices[0].ports[0];

		world_prepare(&w);
		w.config.enable_backup = true;
		if (!i)
			for (int host = 0; host < 2; host++)
				w.dummy[host].devices[0].ports[0] =
					fake_ib_port((uint16_t)(11 + host));
		CHECK_INT(world_open_over(&w, NULL, NULL), 0);
		world_connect(&w, &listen, &send, &recv);
		lines_catch();
		if (types[i] == IBV_EVENT_LID_CHANGE)
			port->lid = 77;
		if (types[i] == IBV_EVENT_GID_CHANGE)
			port->gids[2].address = port->gids[3].address = "10.0.0.99";
		dummy_event(&w.dummy[1], types[i], NULL);
		world_run(&w, 10);
		CHECK_INT(send->b.rail[0].loss.cause,
			  types[i] == IBV_EVENT_SM_CHANGE ? HA_CAUSE_NONE : HA_CAUSE_PORT_CHANGED);
		CHECK_INT(send->b.rail[0].state,
			  types[i] == IBV_EVENT_SM_CHANGE ? HA_RAIL_UP : HA_RAIL_FENCING);
		world_close(&w);
	}
}

/* A shared receive queue is replaced, and ends what stands on it; here there is no failover.
 * Another one's is nobody's. */
static void receive_queue_fails(void)
{
	struct ibv_srq other, *failed;

	open_connection();
	failed = recv->b.rail[0].dev->now->srq;
	CHECK(recv->b.rail[0].srq == failed);
	w.dummy[0].events[w.dummy[0].nevents++] =
		(struct ibv_async_event) { .event_type = IBV_EVENT_SRQ_ERR, .element.srq = &other };
	world_run(&w, 10);
	CHECK(recv->b.rail[0].dev->now->srq == failed && !recv->b.failover->ctl[0].fence_wanted &&
	      !recv->b.abort->error);
	w.dummy[0].events[w.dummy[0].nevents++] =
		(struct ibv_async_event) { .event_type = IBV_EVENT_SRQ_ERR, .element.srq = failed };
	world_run(&w, 2000);
	CHECK(recv->b.rail[0].dev->now->srq && recv->b.rail[0].dev->now->srq != failed);
	CHECK_INT(recv->b.error, -EIO);
	world_close(&w);
}

/* The socket ends in order, without BYE: a dead process. */
static void peer_process_is_gone(void)
{
	open_connection();
	oob_mem_cut(&w.net, 0);
	world_run(&w, 2000); /* these queue pairs never account for their work */
	CHECK_INT(send_error(), -ECONNRESET);
	CHECK(lines_contain("process is gone"));
	world_close(&w);
}

/* It is lost in another way: the rail gets a heartbeat at once, and its queue pair knows. */
static void socket_is_lost(void)
{
	static const int errors[] = { -ECONNRESET, -ETIMEDOUT, -EHOSTUNREACH };

	for (int i = 0; i < 3; i++) {
		struct ha_rail *r;
		int posted;

		open_connection();
		r = &send->b.rail[0];
		r->sq_retired = r->sq_posted;
		world_run(&w, 1);
		posted = w.dummy[1].fake.posted;
		oob_mem_cut(&w.net, errors[i]);
		world_run(&w, 10);
		CHECK(lines_contain("socket is lost"));
		CHECK_INT(w.dummy[1].fake.posted, posted + 1);
		r->sq_retired = r->sq_posted; /* it answers */
		world_run(&w, 10);
		CHECK_INT(send_error(), 0);
		world_run(&w,
			  /* no further one does, and only the queue pair may say so: there is no
			   * failover here */
			  10000);
		CHECK_INT(send_error(), 0);
		world_close(&w);
	}
}

static void orderly_close(void)
{
	struct ha_request *req;
	int done;

	open_connection();
	recv->done = 5;
	ha_close_recv(recv);
	world_run(&w, 4000);
	CHECK_INT(send->b.failover->peer_done, 5);
	CHECK_INT(ha_isend(send, NULL, 0, 0, NULL, &req), 0); /* taken: test() says what is so */
	CHECK_INT(ha_test(req, &done, NULL), -ECONNRESET);
	CHECK_INT(lines_warnings(), 0); /* an orderly end is no news */
	world_close(&w);
}

/* Garbage on the socket of a working connection: said, and no more read; the connection goes on. */
static void garbage_on_the_socket(void)
{
	open_connection();
	w.net.flip_at = w.net.bytes + 1;
	w.net.flip = 1;
	ha_close_recv(recv);
	world_run(&w, 10);
	CHECK(lines_contain("what is no message"));
	world_close(&w);
}

/* Who opens a path asks the port, too, and may see a change before its event is read. */
static void change_is_seen_before_its_event(void)
{
	struct fake_port *port = &w.dummy[1].devices[0].ports[0];

	open_connection();
	world_run(&w, 10);
	port->speed /= 2;
	ha_device_refresh(send->b.rail[0].dev);
	CHECK(!send->b.balance.speed_changed);
	dummy_event(&w.dummy[1], IBV_EVENT_PORT_ACTIVE, NULL);
	world_run(&w, 10);
	CHECK(lines_contain("its speed is"));
	world_close(&w);

	world_prepare(&w);
	w.config.enable_backup = true;
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	world_connect(&w, &listen, &send, &recv);
	port->gids[2].address = port->gids[3].address = "10.0.0.99";
	ha_device_refresh(send->b.rail[0].dev);
	dummy_event(&w.dummy[1], IBV_EVENT_GID_CHANGE, NULL);
	world_run(&w, 10);
	CHECK_INT(send->b.rail[0].loss.cause, HA_CAUSE_PORT_CHANGED);
	CHECK_INT(send->b.rail[0].state, HA_RAIL_FENCING);
	world_close(&w);
}

/* A link that trained anew at another speed: the connections on its device, and no others, cut
 * their messages anew in their next round, which is now. */
static void link_changes_speed(void)
{
	open_connection();
	world_run(&w, 10);
	send->b.schedule->due = w.b->round.due = UINT64_MAX;
	ha_failover_speed(send->b.rail[0].dev);
	CHECK(send->b.balance.speed_changed && !recv->b.balance.speed_changed);
	CHECK_INT(send->b.schedule->due, 0);
	CHECK_INT(w.b->round.due, 0);
	world_run(&w, 10);
	CHECK(!send->b.balance.speed_changed);
	world_close(&w);
}

int main(void)
{
	lines_catch();
	port_and_device();
	events_of_queue_pairs();
	receive_queue_fails();
	port_gets_another_address();
	peer_process_is_gone();
	socket_is_lost();
	orderly_close();
	garbage_on_the_socket();
	link_changes_speed();
	change_is_seen_before_its_event();
	return 0;
}
