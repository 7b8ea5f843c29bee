/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices that fail and come back, over verbs that do nothing: who is taken for the same device,
 * what is closed when, what the log says and how often. That traffic goes over one again is shown
 * by tests/plugin/failover/test_back.c, and in virtual time by sim_returns.
 */
#include "base/check.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "plugin/report/journal.h"
#include "rdma/topo/device.h"
#include "tests/base/lines.h"
#include "tests/plugin/dummy.h"

#include <errno.h>
#include <unistd.h>

static struct world w;

static struct ha_device *first_device_of_b(void)
{
	return &w.b->devices[0];
}

static bool is_away(void)
{
	return atomic_load(&first_device_of_b()->failed) != 0;
}

static int count_contexts(void)
{
	return w.dummy[1].fake.open_contexts;
}

static void open_hosts(void)
{
	world_open(&w);
	lines_catch();
}

static void fail_device(void)
{
	w.dummy[1].devices[0].away = true;
	dummy_event(&w.dummy[1], IBV_EVENT_DEVICE_FATAL, NULL);
	world_run(&w, 50);
	CHECK(is_away());
}

/* As the system lists it from now on. */
static void come_back_as(const char *name)
{
	w.dummy[1].devices[0].name = name;
	w.dummy[1].devices[0].away = false;
	world_run(&w, 6000);
}

static void connect_and_close(void)
{
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;

	world_connect(&w, &listen, &send, &recv);
	CHECK(send->b.rail[0].opening == first_device_of_b()->now);
	ha_close_send(send);
	ha_close_recv(recv);
	ha_close_listen(listen);
}

/* What NCCL knows of it stays. */
static void same_for_nccl(const struct ha_dev_props *before)
{
	struct ha_dev_props now;

	CHECK_INT(ha_ctx_device(w.b, 0, &now), 0);
	CHECK_TEXT(now.name, before->name);
	CHECK_INT(now.guid, before->guid);
	CHECK_INT(now.port, before->port);
	CHECK_INT(now.speed_mbps, before->speed_mbps);
	CHECK_INT(now.max_comms, before->max_comms);
	CHECK_INT(ha_ctx_ndevices(w.b), 2);
}

/* Its context is closed when the last connection on it is, before it is back; then it is opened
 * anew. */
static void returns_as(const char *name)
{
	struct ha_dev_props before;
	struct ha_listen *listen;
	struct ha_send *send;
	struct ha_recv *recv;

	open_hosts();
	CHECK_INT(ha_ctx_device(w.b, 0, &before), 0);
	world_connect(&w, &listen, &send, &recv);
	CHECK_INT(count_contexts(), 2);
	fail_device();
	CHECK_INT(count_contexts(), 2);
	ha_close_send(send);
	world_run(&w, 50);
	CHECK_INT(count_contexts(), 1);
	come_back_as(name);
	CHECK(!is_away() && first_device_of_b()->up);
	CHECK_INT(count_contexts(), 2);
	CHECK_INT(lines_count("device is back"), 1);
	CHECK_INT(lines_count("s, as dummy4"), !strcmp(name, "dummy4"));
	same_for_nccl(&before);
	ha_close_recv(recv);
	ha_close_listen(listen);
	connect_and_close();
	world_close(&w);
}

static void other_name(void)
{
	returns_as("dummy4");
}

/* Its link has trained anew at half the speed; its port is up when it is back, and no event says so
 * again. */
static void back_and_slower(void)
{
	open_hosts();
	fail_device();
	w.dummy[1].devices[0].ports[0].speed /= 2;
	come_back_as("dummy0");
	CHECK(!is_away());
	CHECK_INT(lines_count("its speed is"), 1);
	world_close(&w);
}

static void same_name(void)
{
	returns_as("dummy0");
}

/* The old context stays open as long as something is on it, beside the new one. */
static void old_context_is_held(void)
{
	static char buffer[8192];
	struct ha_held *mr;

	open_hosts();
	CHECK_INT(ha_hold_mr(w.b, 0, buffer, sizeof(buffer), HA_MEM_HOST, 0, -1, 0, &mr), 0);
	fail_device();
	come_back_as("dummy0");
	CHECK(!is_away());
	CHECK_INT(count_contexts(), 3);
	ha_unhold_mr(mr);
	world_run(&w, 50);
	CHECK_INT(count_contexts(), 2);
	CHECK_INT(w.dummy[1].mrs, 0);
	CHECK_INT(ha_hold_mr(w.b, 0, buffer, sizeof(buffer), HA_MEM_HOST, 0, -1, 0, &mr), 0);
	CHECK_INT(w.dummy[1].mrs, 1);
	ha_unhold_mr(mr);
	world_close(&w);
}

/* What a listener keeps for the first peer does not keep the old context open. */
static void listener_holds_nothing(void)
{
	char handle[HA_HANDLE_MAX];
	struct ha_listen *listen;

	open_hosts();
	CHECK_INT(ha_listen(w.b, 0, NULL, handle, &listen), 0);
	fail_device();
	world_run(&w, 50);
	CHECK_INT(count_contexts(), 1);
	come_back_as("dummy0");
	ha_close_listen(listen);
	connect_and_close();
	world_close(&w);
}

/* Another card has its name: it is not the same device, which is said once. */
static void another_card_of_that_name(void)
{
	struct dummy *d = &w.dummy[1];

	open_hosts();
	fail_device();
	d->devices[0].guid = d->devices[0].card_guid = 99;
	d->devices[0].away = false;
	world_run(&w, 60000);
	CHECK(is_away());
	CHECK_INT(count_contexts(), 1);
	CHECK_INT(lines_count("is another one"), 1);
	CHECK_INT(lines_warnings(), 2); /* and that it failed */
	d->devices[0].guid = d->devices[0].card_guid = 1;
	come_back_as("dummy7");
	CHECK(!is_away());
	world_close(&w);
}

/* The second device's entry is its own, though its GUID may be the same. */
static void two_with_one_guid(void)
{
	struct dummy *d = &w.dummy[1];

	world_prepare(&w);
	for (int host = 0; host < 2; host++)
		w.dummy[host].devices[1].guid = 1;
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	lines_catch();
	fail_device();
	world_run(&w, 20000);
	CHECK(is_away());
	d->devices[0].away = false;
	world_run(&w, 6000);
	CHECK(!is_away());
	CHECK(w.b->devices[0].now->nic != w.b->devices[1].now->nic);
	world_close(&w);
}

/* No list, then a device that is listed and does not open: a line each, however long it lasts. */
static void errors_are_logged_once(void)
{
	struct dummy *d = &w.dummy[1];

	open_hosts();
	fail_device();
	d->fake.list_error = -EMFILE;
	world_run(&w, 60000);
	CHECK_INT(lines_count("no list of devices"), 1);
	d->fake.list_error = 0;
	d->devices[0].away = false;
	d->devices[0].open_error = -EIO;
	world_run(&w, 60000);
	CHECK_INT(lines_count("cannot be used"), 1);
	CHECK_INT(lines_warnings(), 3);
	CHECK(is_away());
	CHECK_INT(count_contexts(), 1);
	d->devices[0].open_error = 0;
	world_run(&w, 6000);
	CHECK(!is_away());
	CHECK_INT(lines_warnings(), 3);
	world_close(&w);
}

/* It is back and its link is not up yet. */
static void link_later(void)
{
	struct fake_port *port = &w.dummy[1].devices[0].ports[0];

	open_hosts();
	fail_device();
	port->state = IBV_PORT_DOWN;
	come_back_as("dummy0");
	CHECK(!is_away() && !first_device_of_b()->up);
	CHECK(lines_contain("is down still"));
	port->state = IBV_PORT_ACTIVE;
	dummy_event(&w.dummy[1], IBV_EVENT_PORT_ACTIVE, NULL);
	world_run(&w, 50);
	CHECK(first_device_of_b()->up);
	world_close(&w);
}

/* One that fails again as soon as it is back is looked for more rarely each time. */
static void device_flaps(void)
{
	open_hosts();
	for (int i = 0; i < 5; i++) {
		fail_device();
		CHECK_INT(first_device_of_b()->flaps, i);
		come_back_as("dummy0");
		CHECK(!is_away());
	}
	CHECK_INT(lines_count("device is back"), 5);
	world_run(&w, 20000);
	fail_device();
	CHECK_INT(first_device_of_b()->flaps, 0);
	world_close(&w);
}

/* It ends with a device away, and with one that is back while its old opening is in use. */
static void end_with_a_device_away(void)
{
	static char buffer[8192];
	struct ha_held *mr;

	open_hosts();
	fail_device();
	world_close(&w);
	open_hosts();
	CHECK_INT(ha_hold_mr(w.b, 0, buffer, sizeof(buffer), HA_MEM_HOST, 0, -1, 0, &mr), 0);
	fail_device();
	ha_unhold_mr(mr);
	w.dummy[1].devices[0].away = false;
	world_close(&w);
}

/* For the service thread: it lists devices by another thread. */
static void change_device(struct ha_ctx *ctx, bool here)
{
	struct dummy *d = &w.dummy[1];
	bool done = false;

	while (!done) {
		pthread_mutex_lock(&ctx->drive);
		done = !ctx->returns.search;
		if (done) {
			d->devices[0].ports[0].state = here ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
			d->devices[0].away = !here;
			if (!here)
				dummy_event(d, IBV_EVENT_PORT_ERR, NULL);
		}
		pthread_mutex_unlock(&ctx->drive);
	}
}

static void await_failed(struct ha_ctx *ctx, int value)
{
	for (int ms = 0; ms < 300000 && atomic_load(&ctx->devices[0].failed) != value; ms++)
		usleep(1000);
	CHECK_INT(atomic_load(&ctx->devices[0].failed), value);
}

/* A port goes down, and its device is not listed any more: no event says that it has failed. The
 * second device's port stays up. */
static void removed_without_an_event(void)
{
	struct ha_ctx_params params = { .config = &w.config,
					.verbs = &w.dummy[1].fake.ops,
					.oob = &oob_mem_ops,
					.oob_net = &w.net };
	struct ha_ctx *ctx;

	world_prepare(&w);
	w.config.use_progress_thread = true;
	lines_catch();
	CHECK_INT(ha_ctx_create(&params, &ctx), 0);
	change_device(ctx, false);
	await_failed(ctx, -ENODEV);
	change_device(ctx, true);
	await_failed(ctx, 0);
	CHECK_INT(atomic_load(&ctx->devices[1].failed), 0);
	ha_ctx_destroy(ctx);
	CHECK_INT(lines_count("it was removed"), 1);
	CHECK_INT(lines_count("device is back"), 1);
	dummy_done(&w.dummy[0]);
	dummy_done(&w.dummy[1]);
}

/* With NCCL_IB_RETURN_ASYNC_EVENTS=0 the event is only logged: nothing is left, and nothing looked
 * for. */
static void only_logged(void)
{
	world_prepare(&w);
	w.config.ib_return_async_events = 0;
	CHECK_INT(world_open_over(&w, NULL, NULL), 0);
	lines_catch();
	dummy_event(&w.dummy[1], IBV_EVENT_DEVICE_FATAL, NULL);
	world_run(&w, 6000);
	CHECK(!is_away());
	CHECK_INT(lines_count("device is back"), 0);
	world_close(&w);
}

int main(void)
{
	lines_catch();
	same_name();
	back_and_slower();
	other_name();
	old_context_is_held();
	listener_holds_nothing();
	another_card_of_that_name();
	two_with_one_guid();
	errors_are_logged_once();
	link_later();
	device_flaps();
	end_with_a_device_away();
	only_logged();
	removed_without_an_event();
	return 0;
}
