/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/xdp/switch_xdp.h"

#include "base/clock.h"
#include "base/http.h"
#include "base/signals.h"
#include "ina/frame/neighbour.h"
#include "ina/switch/group_file.h"
#include "ina/switch/xdp/metrics.h"
#ifdef INA_XDP_FOLLOW
#include "base/config.h"
#include "base/log.h"
#include "ina/switch/follow.h"
#endif

#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 1000 /* where are the ranks? */
#define SOON_MS 20   /* while one is looked for */

struct switch_xdp {
	const struct switch_xdp_options *o;
	pthread_mutex_t lock; /* of all below: the follower has a thread of its own */
	struct ina_xdp *x;
	struct ina_xdp_port port[SWITCH_XDP_PORTS];
	int at[INA_GROUPS][INA_RANKS_MAX];          /* the port of each rank, as installed */
	bool said[INA_GROUPS];                      /* that a group waits */
	struct ina_group_config wanted[INA_GROUPS]; /* of the file, until they are installed */
	/* The first thread's. */
	struct ha_loop loop;
	struct ha_signals signals;
	struct ha_http http;
	int stop;
};

static void print_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print_message(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "ha-switch-xdp: %s\n", line);
}

/* ---- where the ranks are ---- */

static bool is_port(const struct switch_xdp *s, int ifindex)
{
	for (size_t i = 0; i < s->o->nports; i++)
		if (s->port[i].ifindex == ifindex)
			return true;
	return false;
}

#define IP_FORMAT "%u.%u.%u.%u"
#define IP(a) (a) >> 24, (a) >> 16 & 255, (a) >> 8 & 255, (a)&255

/* 0; -EAGAIN: not known yet; else why it cannot be. */
static int find_rank(const struct switch_xdp *s, uint32_t addr, struct ina_neighbour *n, char *why,
		     size_t size)
{
	int err = ina_neighbour_find(addr, n);
	char name[IF_NAMESIZE] = "?";

	if (err == -EADDRINUSE) {
		snprintf(why, size,
			 IP_FORMAT " is an address of this machine: a rank is behind a port",
			 IP(addr));
	} else if (err == -EAGAIN) {
		snprintf(why, size, IP_FORMAT " does not answer ARP yet", IP(addr));
	} else if (err) {
		snprintf(why, size, "there is no way to " IP_FORMAT ": %s", IP(addr),
			 strerror(-err));
	} else if (!is_port(s, n->ifindex)) {
		if_indextoname((unsigned)n->ifindex, name);
		snprintf(why, size, IP_FORMAT " is behind %s, which is no --port", IP(addr), name);
		err = -ENETUNREACH;
	}
	return err;
}

static int find_ranks(const struct switch_xdp *s, struct ina_group_config *c, int *ifindex,
		      char *why, size_t size)
{
	struct ina_neighbour n;
	int err = 0;

	for (unsigned r = 0; r < c->ranks && !err; r++) {
		err = find_rank(s, c->member[r].addr, &n, why, size);
		memcpy(c->member[r].mac, n.mac, 6);
		ifindex[r] = n.ifindex;
	}
	return err;
}

/* Ranks that have moved. */
static void look_again(struct switch_xdp *s)
{
	for (unsigned id = 1; id < INA_GROUPS; id++) {
		const struct ina_group *g = ina_xdp_group(s->x, (uint8_t)id);

		for (unsigned r = 0; g && r < g->config.ranks; r++) {
			struct ina_neighbour n;
			char why[128];

			if (find_rank(s, g->config.member[r].addr, &n, why, sizeof(why)) ||
			    (n.ifindex == s->at[id][r] &&
			     !memcmp(n.mac, g->config.member[r].mac, 6)))
				continue;
			if (ina_xdp_move(s->x, (uint8_t)id, r, n.mac, n.ifindex))
				print_message("group %u, rank %u: %s", id, r, ina_xdp_why(s->x));
			s->at[id][r] = n.ifindex;
		}
	}
}

/* ---- groups; the lock is held ---- */

static int install_group(struct switch_xdp *s, const struct ina_group_config *config, char *why,
			 size_t size)
{
	struct ina_group_config c = *config;
	int ifindex[INA_RANKS_MAX], err = find_ranks(s, &c, ifindex, why, size);

	if (err == -EAGAIN && !s->said[c.id])
		print_message("group %u waits: %s", c.id, why);
	s->said[c.id] = err == -EAGAIN;
	if (err)
		return err;
	err = ina_xdp_install(s->x, &c, ifindex);
	if (err) {
		snprintf(why, size, "%s", ina_xdp_why(s->x));
		return err;
	}
	memcpy(s->at[c.id], ifindex, sizeof(ifindex));
	print_message("group %u: epoch %u, %u ranks, %u workers, %s frames, slots %u to %u", c.id,
		      c.epoch, c.ranks, c.workers, c.extended ? "extended" : "old", c.base,
		      c.base + c.len - 1);
	return 0;
}

/* Of the file: false when nothing is left to wait for. */
static bool install_wanted(struct switch_xdp *s)
{
	bool waiting = false;
	char why[256];

	for (unsigned id = 1; id < INA_GROUPS; id++) {
		int err;

		if (!s->wanted[id].id)
			continue;
		err = install_group(s, &s->wanted[id], why, sizeof(why));
		waiting |= err == -EAGAIN;
		if (err == -EAGAIN)
			continue;
		if (err)
			print_message("group %u is refused: %s", id, why);
		s->wanted[id].id = 0;
	}
	return waiting;
}

#ifdef INA_XDP_FOLLOW
static int follow_install(void *arg, const struct ina_group_config *config, const char **why)
{
	static char text[256]; /* the follower's thread is one */
	struct switch_xdp *s = arg;
	int err;

	pthread_mutex_lock(&s->lock);
	err = install_group(s, config, text, sizeof(text));
	pthread_mutex_unlock(&s->lock);
	*why = text;
	return err;
}

static void follow_end(void *arg, uint8_t id, uint32_t epoch)
{
	struct switch_xdp *s = arg;

	pthread_mutex_lock(&s->lock);
	ina_xdp_renew(s->x, id, epoch, 0);
	pthread_mutex_unlock(&s->lock);
	print_message("group %u: epoch %u is over", id, epoch);
}

static void follow_remove(void *arg, uint8_t id, uint32_t epoch)
{
	struct switch_xdp *s = arg;

	pthread_mutex_lock(&s->lock);
	ina_xdp_remove(s->x, id, epoch);
	pthread_mutex_unlock(&s->lock);
}

static size_t follow_seen(void *arg, struct ina_follow_seen *seen)
{
	struct switch_xdp *s = arg;
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned id = 1; id < INA_GROUPS; id++)
		if (ina_xdp_seen(s->x, (uint8_t)id))
			seen[n++] = (struct ina_follow_seen) {
				(uint8_t)id, ina_xdp_group(s->x, (uint8_t)id)->config.epoch
			};
	pthread_mutex_unlock(&s->lock);
	return n;
}

static struct ina_follow *start_follower(struct switch_xdp *s, char *why, size_t size)
{
	const struct switch_xdp_options *o = s->o;
	const struct ina_follow_options options = {
		.client = { .address = o->controller,
			    .tls = { .ca = o->ca, .cert = o->cert, .key = o->key } },
		.name = o->name,
		.addr = o->settings.addr,
		.slots = o->settings.nslots,
		.serves = o->serves,
		.nserves = o->nserves,
		.workers = o->workers
	};
	const struct ina_follow_ops ops = { follow_install, follow_end, follow_remove, follow_seen,
					    s };
	struct ha_config config;

	ha_config_load_env(&config);
	if (config.debug < 2)
		ha_log_configure(NULL, NULL, 2);
	return ina_follow_start(&options, &ops, why, size);
}
#endif

/* ---- to look at ---- */

static void print_state(struct switch_xdp *s)
{
	uint64_t n[INA_XDP_COUNTERS];
	const char *help;

	for (size_t i = 0; i < s->o->nports; i++)
		printf("port %s %s\n", s->port[i].name, s->port[i].native ? "native" : "generic");
	for (unsigned id = 1; id < INA_GROUPS; id++) {
		const struct ina_group *g = ina_xdp_group(s->x, (uint8_t)id);

		if (g)
			printf("group %u epoch %u ranks %u workers %u slots %u %u%s\n", id,
			       g->config.epoch, g->config.ranks, g->config.workers, g->config.base,
			       g->config.len, g->over || !g->config.lease_until ? " over" : "");
	}
	if (!ina_xdp_count(s->x, n))
		for (unsigned i = 0; i < INA_XDP_COUNTERS; i++)
			if (n[i]) {
				const char *name = ina_xdp_counter_name(i, &help);

				printf("%-12s %12llu  %s\n", name, (unsigned long long)n[i], help);
			}
	fflush(stdout);
}

/* ---- the program ---- */

static void close_ports(struct switch_xdp *s, size_t n)
{
	while (n--)
		ina_xdp_port_close(&s->port[n]);
}

static int open_ports(struct switch_xdp *s)
{
	int program = ina_xdp_program(s->x, "ina_switch");
	char why[256];

	for (size_t i = 0; i < s->o->nports; i++) {
		if (ina_xdp_port_open(&s->port[i], s->o->port[i], program, s->o->mode, why,
				      sizeof(why))) {
			print_message("%s", why);
			close_ports(s, i);
			return -1;
		}
		print_message("%s: %s XDP", s->port[i].name,
			      s->port[i].native ? "native" : "generic");
	}
	return 0;
}

static void take_signal(void *switch_xdp, int number)
{
	struct switch_xdp *s = switch_xdp;

	if (number != SIGUSR1) {
		s->stop = 1;
		return;
	}
	pthread_mutex_lock(&s->lock);
	print_state(s);
	pthread_mutex_unlock(&s->lock);
}

static void print_metrics(const void *user, FILE *out)
{
	struct switch_xdp *s = (struct switch_xdp *)user; /* for its lock */

	pthread_mutex_lock(&s->lock);
	ina_xdp_metrics(s->x, s->port, s->o->nports, out);
	pthread_mutex_unlock(&s->lock);
}

/* Before any thread is started: all of them leave signals to the first. */
static int open_loop(struct switch_xdp *s)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGUSR1, 0 };
	int err = ha_loop_open(&s->loop);

	signal(SIGPIPE, SIG_IGN);
	if (!err)
		err = ha_signals_open(&s->signals, &s->loop, signals, take_signal, s);
	if (!err)
		return 0;
	print_message("signals: %s", strerror(-err));
	return 1;
}

static int open_metrics(struct switch_xdp *s)
{
	const char *wrong = ha_http_open(&s->http, &s->loop, print_metrics, s, s->o->metrics);

	if (wrong)
		print_message("--metrics: %s", wrong);
	else if (s->http.server)
		print_message("metrics on port %u", s->http.port);
	return wrong ? 2 : 0;
}

static void run_loop(struct switch_xdp *s)
{
	while (!s->stop) {
		bool waiting;

		pthread_mutex_lock(&s->lock);
		waiting = install_wanted(s);
		look_again(s);
		pthread_mutex_unlock(&s->lock);
		ha_loop_serve(&s->loop,
			      ha_clock_now(&ha_clock_live) +
				      (waiting ? SOON_MS : LOOK_MS) * HA_NS_PER_MS,
			      &s->stop);
		ha_http_tick(&s->http);
	}
}

static int serve_groups(struct switch_xdp *s)
{
	if (s->o->controller && !s->o->groups) {
#ifdef INA_XDP_FOLLOW
		char why[256];
		struct ina_follow *f = start_follower(s, why, sizeof(why));

		if (!f) {
			print_message("--controller: %s", why);
			return 1;
		}
		run_loop(s);
		ina_follow_stop(f);
		return 0;
#else
		print_message("built without the controller's packages (scripts/install-deps ina): "
			      "--groups=FILE is what it can");
		return 2;
#endif
	}
	run_loop(s);
	return 0;
}

static int serve_ports(struct switch_xdp *s)
{
	int rc;

	if (open_ports(s))
		return 1;
	rc = serve_groups(s);
	close_ports(s, s->o->nports);
	print_state(s);
	return rc;
}

int switch_xdp_run(const struct switch_xdp_options *o)
{
	static struct switch_xdp s = { .lock = PTHREAD_MUTEX_INITIALIZER, .loop.fd = -1 };
	struct ina_xdp_settings settings;
	char why[700];
	int rc;

	s.o = o;
	if (o->groups &&
	    ina_group_file(o->groups, ha_clock_now(&ha_clock_live), s.wanted, why, sizeof(why))) {
		print_message("--groups: %s", why);
		return 2;
	}
	rc = open_loop(&s);
	if (rc)
		return rc;
	settings = o->settings;
	for (size_t i = 0; i < o->nports; i++)
		settings.redirect_one |= ina_xdp_port_tx_sleeps(o->port[i], o->mode);
	s.x = ina_xdp_open(&settings, false, why, sizeof(why));
	if (!s.x) {
		print_message("%s", why);
		return 1;
	}
	rc = open_metrics(&s);
	if (!rc)
		rc = serve_ports(&s);
	ha_http_close(&s.http);
	ina_xdp_close(s.x);
	return rc;
}
