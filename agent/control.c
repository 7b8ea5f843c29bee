/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/control.h"

#include "agent/daemon.h"
#include "agent/dump.h"
#include "agent/rule_file.h"
#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINE_MAX_BYTES 256

struct ha_call {
	struct ha_watch watch;
	struct ha_control *control;
	uint64_t since;
	char line[LINE_MAX_BYTES];
	size_t have;
	char *answer; /* NULL: the line is not whole yet */
	size_t len, sent;
	LIST_ENTRY(ha_call) link;
};

/* ---- what is asked ---- */

static const char *rule_command(struct ha_daemon *d, char **word, int n)
{
	bool set = !strcmp(word[0], "set");
	struct ha_rule rule;
	const char *why;

	if (n != (set ? 4 : 3))
		return set ? "set SOURCE DESTINATION SHARE" : "unset SOURCE DESTINATION";
	why = ha_rule_parse(word[1], word[2], set ? word[3] : "0", &rule);
	return why ? why : ha_rule_file_change(d, &rule, set);
}

/* The answer to a line (which it may change); malloc'd, NULL = no memory. *len: its bytes. */
static char *ha_control_answer(struct ha_daemon *d, char *line, size_t *len)
{
	char *word[5], *state = NULL, *answer = NULL;
	const char *why = NULL;
	FILE *out = open_memstream(&answer, len);
	int n = 0;

	if (!out)
		return NULL;
	line[strcspn(line, "\n")] = 0;
	for (char *w = strtok_r(line, " \t", &state); w && n < 5; w = strtok_r(NULL, " \t", &state))
		word[n++] = w;
	if (n == 1 && !strcmp(word[0], "dump")) {
		fputs("ok\n", out);
		ha_dump(d, out);
	} else {
		why = "it understands dump, set and unset";
		if (n && (!strcmp(word[0], "set") || !strcmp(word[0], "unset")))
			why = rule_command(d, word, n);
		fprintf(out, "%s%s\n", why ? "error: " : "ok", why ? why : "");
	}
	if (!fclose(out))
		return answer;
	free(answer);
	return NULL;
}

/* ---- the sockets ---- */

static void hang_up(struct ha_call *call)
{
	ha_loop_remove(call->control->loop, &call->watch);
	close(call->watch.fd);
	LIST_REMOVE(call, link);
	call->control->ncalls--;
	free(call->answer);
	free(call);
}

/* false: it is gone. */
static bool listen_to(struct ha_call *call)
{
	ssize_t n = recv(call->watch.fd, call->line + call->have,
			 sizeof(call->line) - 1 - call->have, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		hang_up(call);
		return false;
	}
	call->have += (size_t)n;
	call->line[call->have] = 0;
	if (!strchr(call->line, '\n') && call->have < sizeof(call->line) - 1)
		return true;
	call->answer = ha_control_answer(call->control->daemon, call->line, &call->len);
	if (!call->answer || ha_loop_change(call->control->loop, &call->watch, EPOLLOUT)) {
		hang_up(call);
		return false;
	}
	return true;
}

static void call_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_call *call = (struct ha_call *)watch; /* its first member */
	ssize_t n;

	if (!call->answer && !listen_to(call))
		return;
	if (!call->answer)
		return;
	n = send(watch->fd, call->answer + call->sent, call->len - call->sent,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		call->sent += (size_t)n;
	if (call->sent == call->len || (n < 0 && errno != EAGAIN && errno != EINTR))
		hang_up(call);
}

static void listener_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_control *c = (struct ha_control *)watch; /* its first member */
	int fd = ha_socket_accept(watch->fd);
	struct ha_call *call;
	struct ucred peer;

	if (fd < 0)
		return;
	call = NULL;
	if (!ha_socket_peer(fd, &peer) && ha_users_rule(peer.uid) && c->ncalls < HA_CONTROL_MOST)
		call = calloc(1, sizeof(*call));
	if (!call) {
		close(fd);
		return;
	}
	call->watch = (struct ha_watch) { fd, call_ready };
	call->control = c;
	call->since = ha_clock_now(&ha_clock_live);
	LIST_INSERT_HEAD(&c->calls, call, link);
	c->ncalls++;
	if (ha_loop_add(c->loop, &call->watch, EPOLLIN))
		hang_up(call);
}

void ha_control_tick(struct ha_control *c, uint64_t now)
{
	struct ha_call *next;

	for (struct ha_call *call = LIST_FIRST(&c->calls); call; call = next) {
		next = LIST_NEXT(call, link);
		if (now - call->since > HA_CONTROL_TIME_LIMIT_NS)
			hang_up(call);
	}
}

int ha_control_relisten(struct ha_control *c, int fd)
{
	int err;

	if (c->listener.fd >= 0) {
		ha_loop_remove(c->loop, &c->listener);
		close(c->listener.fd);
	}
	c->listener = (struct ha_watch) { fd, listener_ready };
	err = ha_loop_add(c->loop, &c->listener, EPOLLIN);
	if (err) {
		close(fd);
		c->listener.fd = -1;
	}
	return err;
}

int ha_control_open(struct ha_control *c, struct ha_loop *loop, struct ha_daemon *daemon, int fd)
{
	*c = (struct ha_control) { .listener.fd = -1, .loop = loop, .daemon = daemon };
	return ha_control_relisten(c, fd);
}

void ha_control_close(struct ha_control *c)
{
	while (!LIST_EMPTY(&c->calls))
		hang_up(LIST_FIRST(&c->calls));
	if (c->listener.fd >= 0) {
		ha_loop_remove(c->loop, &c->listener);
		close(c->listener.fd);
	}
	c->listener.fd = -1;
}
