/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/controller/daemon.h"

#include "base/clock.h"
#include "base/log.h"
#include "ina/controller/metrics.h"
#include "ina/controller/store.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ROUND_NS (20 * HA_NS_PER_MS) /* how long metrics and signals may wait for gRPC */

static int print_error(const char *what, const char *why)
{
	fprintf(stderr, "ha-controller: %s: %s\n", what, why);
	return 1;
}

static void take_signal(void *controller, int number)
{
	((struct ha_controller *)controller)->stop = 1;
}

static int loop_open(struct ha_controller *c)
{
	static const int signals[] = { SIGTERM, SIGINT, 0 };
	int err = ha_loop_open(&c->loop);

	if (err)
		return print_error("epoll", strerror(-err));
	err = ha_signals_open(&c->signals, &c->loop, signals, take_signal, c);
	return err ? print_error("signals", strerror(-err)) : 0;
}

static void metrics_print(const void *controller, FILE *out)
{
	const struct ha_controller *c = controller;

	ha_controller_metrics(&c->service, ha_server_counters(c->server),
			      ha_clock_now(&ha_clock_live), out);
}

/* gRPC's own lines are for those who look into gRPC. */
static void grpc_line(gpr_log_func_args *args)
{
	HA_TRACE("grpc", "%s", args->message);
}

/* SQLite says the same of a directory that is missing and of a file that may not be opened. */
static bool folder_missing(const char *file)
{
	char folder[4096];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", file);
	slash = strrchr(folder, '/');
	if (!slash || slash == folder)
		return false;
	*slash = 0;
	return access(folder, F_OK) != 0;
}

static int state_open(struct ha_controller *c, const struct ha_controller_options *o)
{
	char why[256] = "";

	ha_settings_default(&c->settings);
	if (o->settings && ha_settings_load(&c->settings, o->settings, why, sizeof(why))) {
		fprintf(stderr, "ha-controller: --settings=%s: %s\n", o->settings, why);
		return 2;
	}
	c->store = ha_store_open(o->database, why, sizeof(why));
	if (!c->store) {
		if (folder_missing(o->database))
			snprintf(why, sizeof(why),
				 "its directory does not exist; make it (it holds what outlives a "
				 "restart), "
				 "or name another file: --database=FILE");
		return print_error(o->database, why);
	}
	if (ha_service_open(&c->service, &c->settings, c->store, ha_clock_now(&ha_clock_live), why,
			    sizeof(why)))
		return print_error(o->database, *why ? why : "no memory");
	c->serving = true;
	return 0;
}

static int network_open(struct ha_controller *c, const struct ha_controller_options *o)
{
	char why[256] = "";
	const char *wrong;

	c->server = ha_server_open(&c->service, &o->server, why, sizeof(why));
	if (!c->server)
		return print_error("--listen", why);
	wrong = ha_http_open(&c->http, &c->loop, metrics_print, c, o->metrics);
	if (!wrong)
		return 0;
	print_error("--metrics", wrong);
	return 2;
}

static const char *name_tls(const struct ha_tls *tls)
{
	if (!ha_tls_wanted(tls))
		return "";
	return tls->ca ? ", mutual TLS" : ", TLS";
}

int ha_controller_open(struct ha_controller *c, const struct ha_controller_options *o)
{
	struct rlimit files;
	int err;

	memset(c, 0, sizeof(*c));
	c->loop.fd = c->signals.watch.fd = -1;
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	err = loop_open(c);
	gpr_set_log_function(grpc_line);
	grpc_init();
	if (!err)
		err = state_open(c, o);
	if (!err)
		err = network_open(c, o);
	if (err) {
		ha_controller_close(c);
		return err;
	}
	for (unsigned i = 0; i < o->server.nlisten; i++)
		HA_INFO("controller", "listening at %s (port %d)%s, metrics on port %u",
			o->server.listen[i], ha_server_port(c->server, i), name_tls(&o->server.tls),
			c->http.port);
	HA_INFO("controller", "%u switches, %u groups, %u in quarantine", c->service.groups.nsw,
		c->service.groups.live, c->service.groups.closed);
	return 0;
}

int ha_controller_run(struct ha_controller *c)
{
	uint64_t look = 0;
	int err = 0;

	while (!c->stop && !err) {
		uint64_t now = ha_clock_now(&ha_clock_live);

		err = ha_server_serve(c->server, now + ROUND_NS);
		now = ha_clock_now(&ha_clock_live);
		if (now < look)
			continue;
		look = now + ROUND_NS;
		ha_loop_serve(&c->loop, now + HA_NS_PER_MS, &c->stop);
		ha_http_tick(&c->http);
	}
	return err ? 1 : 0;
}

void ha_controller_close(struct ha_controller *c)
{
	ha_http_close(&c->http);
	if (c->server)
		ha_server_close(c->server);
	if (c->serving)
		ha_service_close(&c->service);
	ha_store_close(c->store);
	ha_signals_close(&c->signals);
	ha_loop_close(&c->loop);
	grpc_shutdown_blocking();
}
