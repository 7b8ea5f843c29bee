/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/switch/switchd/rig.h"

#include "base/check.h"
#include "base/clock.h"
#include "ina/frame/port/eal.h"
#include "tests/base/folder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t ms_now(void)
{
	return ha_clock_now(&ha_clock_live) / HA_NS_PER_MS;
}

void switch_rig_make(struct switch_rig *r, const char *program, unsigned nports)
{
	memset(r, 0, sizeof(*r));
	r->program = program;
	r->nports = nports;
	strcpy(r->top, "/tmp/hawser-switch-XXXXXX");
	CHECK(mkdtemp(r->top));
	snprintf(r->groups, sizeof(r->groups), "%s/groups", r->top);
	snprintf(r->log, sizeof(r->log), "%s/log", r->top);
	for (unsigned p = 0; p < nports; p++) {
		snprintf(r->server[p], sizeof(r->server[p]),
			 "--port=net_memif%u,role=server,socket=%s/m%u,socket-abstract=no", p,
			 r->top, p);
		snprintf(r->client[p], sizeof(r->client[p]),
			 "net_memif%u,role=client,socket=%s/m%u,socket-abstract=no", p, r->top, p);
	}
	switch_rig_groups(r, "");
}

void switch_rig_groups(struct switch_rig *r, const char *text)
{
	FILE *f = fopen(r->groups, "we");

	CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

/* The line of the log that says where the metrics are. */
static unsigned metrics_port(const struct switch_rig *r)
{
	char line[512], *at;
	unsigned port = 0;
	FILE *f = fopen(r->log, "re");

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, "metrics on port ");
		if (at)
			port = (unsigned)atoi(at + strlen("metrics on port "));
	}
	if (f)
		fclose(f);
	return port;
}

void switch_rig_show_log(const struct switch_rig *r)
{
	char line[512];
	FILE *f = fopen(r->log, "re");

	while (f && fgets(line, sizeof(line), f))
		fputs(line, stderr);
	if (f)
		fclose(f);
}

static void exec_switch(const struct switch_rig *r, const char **argv)
{
	int fd = open(r->log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
	/* else it would share the processor that DPDK has bound us to, and each would wait for
	 * the other's time to end */
	ina_eal_unbind_thread();
	dup2(fd, STDERR_FILENO);
	dup2(fd, STDOUT_FILENO);
	execv(r->program, (char **)(uintptr_t)argv);
	_exit(127);
}

void switch_rig_start(struct switch_rig *r, const char *const *options)
{
	const char *argv[RIG_ARGS] = { r->program, "--address=10.0.0.254", "--metrics=127.0.0.1:0",
				       "--memory=64", "--idle-us=100" };
	char groups[128];
	unsigned n = 5;
	uint64_t end = ms_now() + RIG_TIME_LIMIT_MS;

	snprintf(groups, sizeof(groups), "--groups=%s", r->groups);
	argv[n++] = groups;
	for (unsigned p = 0; p < r->nports; p++)
		argv[n++] = r->server[p];
	while (options && *options && n < RIG_ARGS - 1)
		argv[n++] = *options++;
	unlink(r->log);
	r->pid = fork();
	CHECK(r->pid >= 0);
	if (!r->pid)
		exec_switch(r, argv);
	while (!(r->metrics = metrics_port(r))) {
		if (ms_now() > end || waitpid(r->pid, NULL, WNOHANG) == r->pid) {
			switch_rig_show_log(r);
			CHECK(!"ha-switch serves");
		}
		usleep(5000);
	}
}

void switch_rig_connect(struct switch_rig *r)
{
	struct ina_eal_options o = {
		.program = "rig", .nports = r->nports, .threads = 1, .memory_mb = 64
	};
	struct ina_port_config c = { 0 };
	char why[256] = "";

	for (unsigned p = 0; p < r->nports; p++)
		o.port[p] = r->client[p];
	if (ina_eal_start(&o, why, sizeof(why)) ||
	    !(c.pool = r->pool = ina_pool_create("rig", 8192, why, sizeof(why)))) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	for (unsigned p = 0; p < r->nports; p++) {
		if (ina_port_open(&r->port[p], r->client[p], &c, why, sizeof(why))) {
			fprintf(stderr, "%s\n", why);
			exit(1);
		}
		CHECK(!ina_tx_open(&r->tx[p], &r->port[p], 0, 1, 1024));
	}
}

void switch_rig_await_up(struct switch_rig *r)
{
	uint64_t end = ms_now() + RIG_TIME_LIMIT_MS;
	struct rte_mbuf *m;

	for (unsigned p = 0; p < r->nports; p++) {
		char name[64];

		snprintf(name, sizeof(name), "hawser_switch_port_up{port=\"net_memif%u\"}", p);
		while (!ina_port_up(&r->port[p]) || !switch_rig_metric(r, name)) {
			if (ms_now() >= end) {
				switch_rig_show_log(r);
				CHECK(!"each port comes up at both ends");
			}
			usleep(2000);
		}
		while (ina_port_receive(&r->port[p], 0, &m,
					/* what was on its way to the incarnation before; and
					 * buffers for the switch */
					1))
			rte_pktmbuf_free(m);
	}
}

/* ---- metrics ---- */

const char *switch_rig_page(struct switch_rig *r)
{
	static const char request[] = "GET /metrics HTTP/1.0\r\n\r\n";
	static char text[1 << 18];
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)r->metrics),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t have = 0;
	ssize_t n;

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
	CHECK(write(fd, request, sizeof(request) - 1) == (ssize_t)sizeof(request) - 1);
	while (have < sizeof(text) - 1 && (n = read(fd, text + have, sizeof(text) - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = 0;
	close(fd);
	CHECK(strstr(text, "# EOF"));
	return text;
}

uint64_t switch_rig_number(const char *page, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = page; (at = strstr(at, name));) {
		if (at[-1] == '\n' && at[len] == ' ')
			return strtoull(at + len, NULL, 10);
		at += len;
	}
	fprintf(stderr, "no metric %s\n", name);
	exit(1);
}

uint64_t switch_rig_metric(struct switch_rig *r, const char *name)
{
	return switch_rig_number(switch_rig_page(r), name);
}

void switch_rig_reload(struct switch_rig *r)
{
	uint64_t before = switch_rig_metric(r, "hawser_switch_reloads_total"),
		 end = ms_now() + RIG_TIME_LIMIT_MS;

	CHECK(!kill(r->pid, SIGHUP));
	while (switch_rig_metric(r, "hawser_switch_reloads_total") == before) {
		CHECK(ms_now() < end);
		usleep(1000);
	}
}

/* ---- the end ---- */

int switch_rig_stop(struct switch_rig *r, int signal)
{
	int status;

	CHECK(!kill(r->pid, signal));
	CHECK(waitpid(r->pid, &status, 0) == r->pid);
	if (signal == SIGTERM && status)
		switch_rig_show_log(r);
	r->pid = 0;
	return status;
}

void switch_rig_end(struct switch_rig *r)
{
	for (unsigned p = 0; p < r->nports; p++) {
		ina_tx_close(&r->tx[p]);
		ina_port_close(&r->port[p]);
	}
	if (r->pid)
		CHECK_INT(switch_rig_stop(r, SIGTERM), 0);
	folder_remove(r->top);
	ina_eal_stop();
}

/* ---- packets ---- */

void switch_rig_send(struct switch_rig *r, unsigned port, const void *bytes, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->pool);
	uint64_t end = ms_now() + RIG_TIME_LIMIT_MS;

	CHECK(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), bytes, len);
	ina_tx_send(&r->tx[port], m);
	while (!ina_tx_flush(&r->tx[port]))
		CHECK(ms_now() < end);
}

struct rte_mbuf *switch_rig_receive(struct switch_rig *r, unsigned port, unsigned ms)
{
	uint64_t end = ms_now() + ms;
	struct rte_mbuf *m;

	while (!ina_port_receive(&r->port[port], 0, &m, 1)) {
		if (ms_now() > end)
			return NULL;
		usleep(50);
	}
	return m;
}
