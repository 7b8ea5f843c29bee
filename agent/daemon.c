/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/daemon.h"

#include "agent/alias.h"
#include "agent/dump.h"
#include "agent/rule_file.h"
#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TICK_NS (MPIB_HINT_BEAT_MS / 2 * HA_NS_PER_MS) /* twice as often as promised */
#define SWEEP_NS (100 * HA_NS_PER_MS)
#define SWEEPS 10      /* each process is looked at once in so many sweeps */
#define SPARE_FILES 64 /* descriptors that are not registration sockets */

static int report_error(const char *what, const char *why)
{
	fprintf(stderr, "ha-agent: %s: %s\n", what, why);
	return 1;
}

static const char *folder_error(int err)
{
	if (err == -EPERM)
		return "the directory is another user's, or others may write to it; remove it, or "
		       "name another with --socket and --hints and in the jobs' "
		       "HA_NCCL_AGENT_SOCKET and HA_NCCL_AGENT_HINTS";
	if (err == -EBUSY)
		return "another agent runs there";
	if (err == -ENOENT)
		return "there is no such directory; make it, or name another with --socket and "
		       "--hints and in the jobs' HA_NCCL_AGENT_SOCKET and HA_NCCL_AGENT_HINTS";
	return strerror(-err);
}

/* ---- files and sockets ---- */

static const struct ha_folder *hints_folder(const struct ha_daemon *d)
{
	return d->hints_folder.fd >= 0 ? &d->hints_folder : &d->folder;
}

static int folders_open(struct ha_daemon *d, const char **hints_name)
{
	const char *a, *b;
	int err = ha_folder_open(&d->folder, d->options.socket, &d->socket_name);

	if (!err)
		err = ha_folder_lock(&d->folder);
	if (err)
		return report_error(d->folder.path, folder_error(err));
	a = strrchr(d->options.socket, '/');
	b = strrchr(d->options.hints, '/');
	*hints_name = b ? b + 1 : d->options.hints;
	if (a && b && a - d->options.socket == b - d->options.hints &&
	    !strncmp(d->options.socket, d->options.hints, (size_t)(a - d->options.socket)))
		return 0;
	err = ha_folder_open(&d->hints_folder, d->options.hints, hints_name);
	if (!err)
		err = ha_folder_lock(&d->hints_folder);
	return err ? report_error(d->hints_folder.path, folder_error(err)) : 0;
}

/* Anybody may connect where somebody besides us may register; who it is, is looked at then. */
static int listen_registration(struct ha_daemon *d)
{
	mode_t mode = d->users.all || d->users.n ? 0666 : 0600;
	int fd = ha_folder_listen(&d->folder, d->socket_name, mode);

	d->socket_inode = ha_folder_inode(&d->folder, d->socket_name);
	return fd;
}

static int listen_control(struct ha_daemon *d)
{
	int fd = ha_folder_listen(&d->folder, HA_AGENT_CONTROL, 0600);

	d->control_inode = ha_folder_inode(&d->folder, HA_AGENT_CONTROL);
	return fd;
}

static int report_control_error(struct ha_daemon *d, int err)
{
	char path[sizeof(d->folder.path) + sizeof(HA_AGENT_CONTROL) + 1];

	snprintf(path, sizeof(path), "%s/%s", d->folder.path, HA_AGENT_CONTROL);
	return report_error(path, strerror(-err));
}

static int sockets_open(struct ha_daemon *d)
{
	int fd = listen_registration(d), err = fd < 0 ? fd : 0;

	if (!err)
		err = ha_registrar_open(&d->registrar, &d->loop, &d->slots, &d->users, fd,
					d->options.most);
	if (err)
		return report_error(d->options.socket, strerror(-err));
	fd = listen_control(d);
	err = fd < 0 ? fd : ha_control_open(&d->control, &d->loop, d, fd);
	return err ? report_control_error(d, err) : 0;
}

/* Without the link our own plugins find us all the same: no reason to end. */
static void alias_ensure(struct ha_daemon *d)
{
	const char *alias = d->options.alias;
	int err;

	if (!alias || d->alias_refused)
		return;
	err = ha_alias_ensure(alias, d->folder.path);
	if (!err)
		return;
	d->alias_refused = true;
	HA_WARN("agent",
		"%s cannot lead to %s: %s. Programs that look only there do not find this agent, "
		"hawser's plugin does; "
		"remove what is there and start the agent again",
		alias, d->folder.path,
		err == -EEXIST ? "something else has that name" : strerror(-err));
}

/* Opens the folders again, which are locked as before; 0 or a negative errno. */
static int folders_reopen(struct ha_daemon *d)
{
	const char *name;
	int err;

	ha_folder_close(&d->folder);
	err = ha_folder_open(&d->folder, d->options.socket, &d->socket_name);
	if (!err)
		err = ha_folder_lock(&d->folder);
	if (err || d->hints_folder.fd < 0)
		return err;
	ha_folder_close(&d->hints_folder);
	err = ha_folder_open(&d->hints_folder, d->options.hints, &name);
	return err ? err : ha_folder_lock(&d->hints_folder);
}

/* Something (a cleaner of /tmp) has removed what we made: make it again, so that newcomers find
 * it. */
static void restore_files(struct ha_daemon *d)
{
	bool hints = ha_folder_holds(hints_folder(d), d->page.name, d->page.inode);
	bool registration = ha_folder_holds(&d->folder, d->socket_name, d->socket_inode);
	bool control = ha_folder_holds(&d->folder, HA_AGENT_CONTROL, d->control_inode);
	int fd, err;

	alias_ensure(d);
	if (hints && registration && control)
		return;
	d->restored++;
	HA_WARN("agent",
		"files in %s were removed; making them again. Configure whatever cleans there to "
		"leave "
		"it alone",
		d->folder.path);
	err = folders_reopen(d);
	if (!err && !hints)
		err = ha_page_again(&d->page, hints_folder(d));
	d->slots.shm = d->page.shm;
	if (!err && !registration && (fd = listen_registration(d)) >= 0)
		err = ha_registrar_relisten(&d->registrar, fd);
	if (!err && !control && (fd = listen_control(d)) >= 0)
		err = ha_control_relisten(&d->control, fd);
	if (!err)
		err = ha_rule_file_save(d);
	if (err) {
		/* Hints that nobody can find any more are no use; whoever starts us again gets a
		 * clear line. */
		report_error(d->folder.path, folder_error(err));
		d->stop = 1;
	}
}

/* ---- signals ---- */

static void take_signal(void *daemon, int number)
{
	struct ha_daemon *d = daemon;

	if (number == SIGHUP)
		d->next_look = 0;
	else
		d->stop = 1;
}

/* ---- opening and closing ---- */

/* As many descriptors as we may have, and no more sockets than they allow. */
static void files_limit(struct ha_daemon *d)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	if (limit.rlim_cur < d->options.most + SPARE_FILES) {
		d->options.most = SPARE_FILES;
		if (limit.rlim_cur > 2 * SPARE_FILES)
			d->options.most = (unsigned)limit.rlim_cur - SPARE_FILES;
		HA_WARN("agent", "the limit of open files allows %u registration sockets",
			d->options.most);
	}
}

static void metrics_print(const void *daemon, FILE *out)
{
	ha_dump_metrics(daemon, out);
}

static int parts_open(struct ha_daemon *d)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGHUP, 0 };
	const char *wrong, *hints_name;
	int err = folders_open(d, &hints_name);

	if (err)
		return err;
	err = ha_page_open(&d->page, hints_folder(d), hints_name);
	if (err)
		return report_error(d->options.hints, strerror(-err));
	ha_slots_open(&d->slots, d->page.shm, d->started);
	wrong = ha_advisor_open(&d->advisor, &d->slots, d->options.policy, d->options.sysfs,
				d->started);
	if (wrong) {
		report_error("--policy", wrong);
		return 2;
	}
	ha_rule_file_load(d);
	err = ha_loop_open(&d->loop);
	if (err)
		return report_error("epoll", strerror(-err));
	err = ha_signals_open(&d->signals, &d->loop, signals, take_signal, d);
	if (err)
		return report_error("signals", strerror(-err));
	wrong = ha_http_open(&d->http, &d->loop, metrics_print, d, d->options.metrics);
	if (wrong) {
		report_error("--metrics", wrong);
		return 2;
	}
	return sockets_open(d);
}

int ha_daemon_open(struct ha_daemon *d, const struct ha_daemon_options *options)
{
	const char *word;
	int err;

	memset(d, 0, sizeof(*d));
	d->options = *options;
	d->folder.fd = d->hints_folder.fd = d->loop.fd = d->signals.watch.fd = -1;
	d->registrar.listener.fd = d->control.listener.fd = -1;
	d->started = ha_clock_now(&ha_clock_live);
	word = ha_users_parse(&d->users, options->users);
	if (word) {
		fprintf(stderr, "ha-agent: --users: there is no user '%s' here\n", word);
		return 2;
	}
	files_limit(d);
	err = parts_open(d);
	if (err) {
		ha_daemon_close(d);
		return err;
	}
	alias_ensure(d);
	HA_INFO("agent",
		"registration at %s, hints at %s (%s, %u flows), policy %s, metrics on port %u",
		options->socket, options->hints, d->page.inherited ? "taken over" : "new",
		d->slots.used, ha_advisor_policy_text(d->advisor.policy), d->http.port);
	return 0;
}

static void tick_parts(struct ha_daemon *d, uint64_t now)
{
	ha_page_heartbeat(&d->page);
	ha_registrar_tick(&d->registrar, now);
	ha_control_tick(&d->control, now);
	ha_http_tick(&d->http);
	if (now >= d->next_sweep) {
		d->next_sweep = now + SWEEP_NS;
		ha_owner_sweep(&d->slots, d->slots.nowners / SWEEPS + 1);
		ha_slots_expire(&d->slots, now);
		restore_files(d);
	}
	if (now >= d->next_look) {
		d->next_look = now + d->options.look_ms * HA_NS_PER_MS;
		ha_advisor_tick(&d->advisor, now);
	}
}

void ha_daemon_run(struct ha_daemon *d)
{
	while (!d->stop) {
		uint64_t now = ha_clock_now(&ha_clock_live);

		tick_parts(d, now);
		ha_loop_serve(&d->loop, now + TICK_NS, &d->stop);
	}
	HA_INFO("agent",
		"ends; the hints stay for the next agent, plugins choose by topology until then");
}

/* The hints stay. The names of the sockets go, if they are still ours. */
void ha_daemon_close(struct ha_daemon *d)
{
	if (d->control.listener.fd >= 0) {
		ha_control_close(&d->control);
		if (ha_folder_holds(&d->folder, HA_AGENT_CONTROL, d->control_inode))
			unlinkat(d->folder.fd, HA_AGENT_CONTROL, 0);
	}
	if (d->registrar.listener.fd >= 0) {
		ha_registrar_close(&d->registrar);
		if (ha_folder_holds(&d->folder, d->socket_name, d->socket_inode))
			unlinkat(d->folder.fd, d->socket_name, 0);
	}
	ha_http_close(&d->http);
	ha_signals_close(&d->signals);
	ha_loop_close(&d->loop);
	ha_advisor_close(&d->advisor);
	ha_slots_close(&d->slots);
	ha_page_close(&d->page);
	ha_folder_close(&d->hints_folder);
	ha_folder_close(&d->folder);
}
