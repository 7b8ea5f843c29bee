/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/switchd.h"

#include "base/clock.h"
#include "base/log.h"
#include "ina/frame/address.h"
#include "ina/switch/switchd/metrics.h"

#include <rte_errno.h>
#include <rte_launch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* between two looks at the ports' cables: a memif dials then */
#define ROUND_NS (200 * HA_NS_PER_MS)

static int print_error(const char *what, const char *why)
{
	fprintf(stderr, "ha-switch: %s%s%s\n", what ? what : "", what ? ": " : "", why);
	return 1;
}

/* ---- signals ---- */

static void reload_groups(struct ina_switchd *s)
{
	char why[256];
	bool read;

	if (!s->options->groups)
		HA_WARN("switch", "SIGHUP: there is no --groups to read");
	else if (ina_groups_load(&s->groups, s->options->groups, &read, why, sizeof(why)))
		HA_WARN("switch", "%s; %s", why,
			read ? "groups that can be are as the file says"
			     : "groups stay as they are");
	s->reloads++;
}

static void take_signal(void *switchd, int number)
{
	struct ina_switchd *s = switchd;

	if (number == SIGUSR1)
		ina_switchd_dump(s, stdout);
	else if (number == SIGHUP)
		reload_groups(s);
	else
		s->stop = 1;
}

/* Before any thread is started: all of them leave signals to the first. */
static int loop_open(struct ina_switchd *s)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1, 0 };
	int err = ha_loop_open(&s->loop);

	signal(SIGPIPE, SIG_IGN);
	if (!err)
		err = ha_signals_open(&s->signals, &s->loop, signals, take_signal, s);
	return err ? print_error("signals", strerror(-err)) : 0;
}

/* ---- ports and cores ---- */

static unsigned count_packets(const struct ina_switch_options *o)
{
	unsigned mb = o->eal.memory_mb ? o->eal.memory_mb : 256;

	return o->packets ? o->packets
			  : (unsigned)((uint64_t)mb * 1024 * 1024 * 3 / 4 / ina_packet_bytes());
}

static int ports_open(struct ina_switchd *s, const struct ina_switch_options *o)
{
	struct ina_port_config c = { .rx_queues = o->queues,
				     .tx_queues = o->cores,
				     .promiscuous = true };
	char why[256];

	c.pool = s->all->pool = ina_pool_create("packets", count_packets(o), why, sizeof(why));
	if (!c.pool)
		return print_error(NULL, why);
	for (unsigned p = 0; p < o->eal.nports; p++) {
		/*
		 * A memif's other end says how many queues there are, and it has one unless it was
		 * told otherwise.
		 */
		c.tx_queues = strncmp(o->eal.port[p], "net_memif", 9) ? o->cores : o->queues;
		if (ina_port_open(&s->all->port[p], o->eal.port[p], &c, why, sizeof(why)))
			return print_error("--port", why);
		s->all->nports++;
	}
	return 0;
}

static int cores_start(struct ina_switchd *s, const struct ina_switch_options *o)
{
	struct ina_cores *all = s->all;
	char why[256];
	int err;

	all->addr = o->addr;
	memcpy(all->mac, o->mac, 6);
	all->ncores = o->cores;
	all->nslots = o->slots;
	all->mark = o->mark;
	all->faults = o->faults;
	all->queue = o->queue;
	all->idle_us = o->idle_us;
	all->shared = o->eal.shared;
	all->reflect = o->reflect;
	if (ina_cores_open(all, why, sizeof(why)))
		return print_error(NULL, why);
	for (unsigned i = 0; i < all->ncores; i++) {
		err = rte_eal_remote_launch(ina_core_run, all->core[i], i + 1);
		if (err)
			return print_error("a core does not start", rte_strerror(-err));
		s->running++;
	}
	return 0;
}

/* ---- the whole ---- */

static void metrics_print(const void *user, FILE *out)
{
	ina_switchd_metrics(user, out);
}

static int groups_open(struct ina_switchd *s, const struct ina_switch_options *o)
{
	struct ina_follow_ops ops = ina_groups_ops(&s->groups);
	char why[256] = "";
	bool read;

	if (o->groups && ina_groups_load(&s->groups, o->groups, &read, why, sizeof(why))) {
		print_error("--groups", why);
		return 2;
	}
	if (!o->follow.client.address)
		return 0;
	s->follow = ina_follow_start(&o->follow, &ops, why, sizeof(why));
	return s->follow ? 0 : print_error("--controller", why);
}

static int open_parts(struct ina_switchd *s, const struct ina_switch_options *o)
{
	char why[256] = "";
	const char *wrong;
	int err = loop_open(s);

	if (err)
		return err;
	if (ina_eal_start(&o->eal, why, sizeof(why)))
		return print_error(NULL, why);
	s->eal = true;
	ina_eal_unbind_thread();
	s->all = calloc(1, sizeof(*s->all));
	if (!s->all)
		return print_error(NULL, "no memory");
	ina_groups_open(&s->groups, s->all);
	wrong = ha_http_open(&s->http, &s->loop, metrics_print, s, o->metrics);
	if (wrong) {
		print_error("--metrics", wrong);
		return 2;
	}
	err = ports_open(s, o);
	if (!err)
		err = cores_start(s, o);
	return err ? err : groups_open(s, o);
}

int ina_switchd_open(struct ina_switchd *s, const struct ina_switch_options *o)
{
	char addr[HA_ADDRESS_TEXT];
	int err;

	memset(s, 0, sizeof(*s));
	s->options = o;
	s->loop.fd = s->signals.watch.fd = -1;
	err = open_parts(s, o);
	if (err) {
		ina_switchd_close(s);
		return err;
	}
	HA_INFO("switch", "%s at %s: %u ports, %u cores, %u slots, metrics on port %u%s", o->name,
		ha_address_text(o->addr, addr), s->all->nports, s->all->ncores, o->slots,
		s->http.port, o->faults.on ? ", with --fault" : "");
	return 0;
}

static void look_at_cables(struct ina_switchd *s)
{
	for (unsigned p = 0; p < s->all->nports; p++) {
		bool up = ina_port_up(&s->all->port[p]);

		if (up != s->up[p])
			HA_INFO("switch", "port %s is %s", s->all->port[p].name,
				up ? "up" : "down");
		s->up[p] = up;
	}
}

int ina_switchd_run(struct ina_switchd *s)
{
	while (!s->stop) {
		look_at_cables(s);
		ha_loop_serve(&s->loop, ha_clock_now(&ha_clock_live) + ROUND_NS, &s->stop);
		ha_http_tick(&s->http);
	}
	return 0;
}

static void cores_stop(struct ina_switchd *s)
{
	atomic_store_explicit(&s->all->stop, true, memory_order_relaxed);
	for (unsigned i = 0; i < s->running; i++)
		rte_eal_wait_lcore(i + 1);
	ina_cores_close(s->all);
	for (unsigned p = 0; p < s->all->nports; p++)
		ina_port_close(&s->all->port[p]);
	ina_groups_close(&s->groups);
	free(s->all);
}

void ina_switchd_close(struct ina_switchd *s)
{
	if (s->follow)
		ina_follow_stop(s->follow);
	ha_http_close(&s->http);
	if (s->all)
		cores_stop(s);
	ha_signals_close(&s->signals);
	if (s->loop.fd >= 0)
		ha_loop_close(&s->loop);
	if (s->eal)
		ina_eal_stop();
}
