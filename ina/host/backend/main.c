/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-backend: options, and then the daemon. */
#include "base/clock.h"
#include "base/config.h"
#include "base/http.h"
#include "base/log.h"
#include "ina/host/backend/authority_controller.h"
#include "ina/host/backend/cores.h"
#include "ina/host/backend/metrics.h"
#include "ina/host/backend/net.h"
#ifdef HA_BACKEND_DPDK
#include "ina/host/backend/net_dpdk.h"
#endif
#include "ina/host/backend/options.h"

#include <errno.h>
#include <grpc/support/log.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#define ROUND_MS 20 /* how long metrics and signals may wait */

struct daemon {
	struct ha_backend *backend;
	struct ha_loop loop;
	struct ha_http http;
	struct ha_backend_figures figures;
	int cpu[1 + INA_WORKERS_MAX];
};

static volatile sig_atomic_t stop;

static void on_signal(int signal)
{
	stop = 1;
}

static int report_error(const char *what, const char *why)
{
	fprintf(stderr, "ha-backend: %s: %s\n", what, why);
	return 1;
}

static void grpc_line(gpr_log_func_args *args)
{
	HA_TRACE("grpc", "%s", args->message);
}

static void print_metrics(const void *daemon, FILE *out)
{
	ha_backend_metrics(((const struct daemon *)daemon)->backend, out);
}

static struct ha_net *open_net(const struct ha_backend_settings *s, char *why, size_t size)
{
	if (s->net == HA_BACKEND_NET_LOOPBACK)
		return ha_net_loopback_open(s->workers, s->addr, why, size);
	if (s->net == HA_BACKEND_NET_PACKET)
		return ha_net_packet_open(s->workers, s->addr, s->interface, why, size);
#ifdef HA_BACKEND_DPDK
	return ha_net_dpdk_open(s->workers, s->addr, s->port, s->memory_mb, why, size);
#else
	snprintf(why, size, "this ha-backend was built without DPDK: make ina, or --net=packet");
	return NULL;
#endif
}

static struct ha_authority *open_authority(const struct ha_backend_settings *s, struct ha_net *net,
					   char *why, size_t size)
{
	struct ha_authority *a;

	if (s->controller.address)
		return ha_authority_controller_open(&s->groups, &s->controller, why, size);
	a = ha_authority_local_open(&s->groups, net);
	if (!a)
		snprintf(why, size, "no memory");
	return a;
}

static int set_cores(struct daemon *d, struct ha_backend_settings *s, int node)
{
	char why[256];
	bool shared;

	if (ha_cores_choose(s->cpus, node, 1 + s->workers, d->cpu, &shared, why, sizeof(why)))
		return report_error("--cpus", why);
	s->backend.limits.shared |= shared;
	s->backend.cpu = s->backend.limits.shared ? NULL : d->cpu;
	return 0;
}

static int open_backend(struct daemon *d, struct ha_backend_settings *s)
{
	char why[512] = "";
	struct ha_net *net = open_net(s, why, sizeof(why));
	struct ha_authority *a;

	if (!net)
		return report_error("the card", why);
	if (set_cores(d, s, net->node)) {
		ha_net_close(net);
		return 2;
	}
	a = open_authority(s, net, why, sizeof(why));
	if (!a) {
		ha_net_close(net);
		return report_error("--controller", why);
	}
	s->backend.switch_mac = s->has_switch_mac ? s->switch_mac : NULL;
	d->backend = ha_backend_open(&s->backend, net, a, why, sizeof(why));
	if (!d->backend)
		return report_error("it cannot start", why);
	HA_INFO(NULL, "card %s (%s), %u.%u.%u.%u, %u workers; clients at %s; groups: %s",
		net->device, net->ops->name, net->addr >> 24, net->addr >> 16 & 255,
		net->addr >> 8 & 255, net->addr & 255, net->workers, s->backend.server.path,
		s->controller.address ? s->controller.address : "this host's alone");
	if (s->backend.limits.shared)
		HA_INFO(NULL, "%u threads that poll share their processors: nobody is pinned",
			1 + s->workers);
	return 0;
}

static int open_metrics(struct daemon *d, const struct ha_backend_settings *s)
{
	const char *wrong;

	if (ha_loop_open(&d->loop))
		return report_error("epoll", strerror(errno));
	wrong = ha_http_open(&d->http, &d->loop, print_metrics, d, s->metrics);
	if (!wrong)
		return 0;
	report_error("--metrics", wrong);
	return 2;
}

static void run_daemon(struct daemon *d, const struct ha_backend_settings *s)
{
	uint64_t now = ha_clock_now(&ha_clock_live), log_at = now, look_at = now;
	const int go_on = 0;

	ha_backend_figures_log(d->backend, &d->figures, now);
	while (!stop) {
		ha_backend_serve(d->backend, ROUND_MS);
		now = ha_clock_now(&ha_clock_live);
		if (now >= look_at) {
			look_at = now + ROUND_MS * HA_NS_PER_MS;
			ha_loop_serve(&d->loop, now + 1, &go_on);
			ha_http_tick(&d->http);
		}
		if (!s->log_s || now - log_at < s->log_s * HA_NS_PER_S)
			continue;
		log_at = now;
		ha_backend_figures_log(d->backend, &d->figures, now);
	}
}

static void set_process(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct rlimit files;

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	gpr_set_log_function(grpc_line);
}

int main(int argc, char **argv)
{
	static struct daemon d = { .loop.fd = -1 };
	struct ha_backend_settings settings;
	static struct ha_config config; /* settings point into it */
	int rc;

	ha_config_load_env(&config);
	if (config.debug < 2)
		ha_log_configure(NULL, NULL, 2);
	rc = ha_backend_options_parse(argc, argv, &config, &settings);
	if (rc)
		return rc - 1;
	set_process();
	rc = open_backend(&d, &settings);
	if (!rc) {
		rc = open_metrics(&d, &settings);
		if (!rc)
			run_daemon(&d, &settings);
		ha_http_close(&d.http);
		ha_loop_close(&d.loop);
		ha_backend_close(d.backend);
	}
	return rc;
}
