/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A flow is on one of three lists: waiting (to be asked for, or asked), held (it has its slot),
 * refused (asked again every RETRY_NS). The agent answers in the order of the questions, so answers
 * name nobody.
 */
#include "plugin/balance/agent_client.h"

#include "base/clock.h"
#include "base/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_FIRST_NS (100 * HA_NS_PER_MS)
#define PAUSE_LAST_NS (5 * HA_NS_PER_S)
#define ANSWER_LIMIT_NS HA_NS_PER_S /* for an answer */
#define RETRY_NS (5 * HA_NS_PER_S)  /* of a refused flow */
#define DEREGISTRATIONS_MAX 65536   /* more connections than a process can number */

int ha_agent_client_open(struct ha_agent_client *c, const char *path)
{
	memset(c, 0, sizeof(*c));
	c->fd = -1;
	c->pid = (uint32_t)getpid();
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->held);
	TAILQ_INIT(&c->refused);
	return snprintf(c->path, sizeof(c->path), "%s", path) < (int)sizeof(c->path)
		       ? 0
		       : -ENAMETOOLONG;
}

void ha_agent_client_close(struct ha_agent_client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	free(c->to_deregister);
	c->to_deregister = NULL;
}

/* ---- flows ---- */

static void move_flow(struct ha_agent_flow *flow, struct ha_agent_flows *to)
{
	if (flow->list)
		TAILQ_REMOVE(flow->list, flow, entry);
	TAILQ_INSERT_TAIL(to, flow, entry);
	flow->list = to;
}

static void move_all(struct ha_agent_flows *from, struct ha_agent_flows *to)
{
	struct ha_agent_flow *flow;

	while ((flow = TAILQ_FIRST(from)) != NULL)
		move_flow(flow, to);
}

static bool is_listed(const struct ha_agent_flows *list, uint32_t conn_id)
{
	const struct ha_agent_flow *flow;

	TAILQ_FOREACH(flow, list, entry)
		if (flow->conn_id == conn_id)
			return true;
	return false;
}

static bool is_outstanding(const struct ha_agent_client *c, uint32_t conn_id)
{
	for (uint32_t i = 0; i < c->deregister_count; i++)
		if (c->to_deregister[i] == conn_id)
			return true;
	for (unsigned i = 0; i < c->asked; i++)
		if (c->question[(c->first + i) % HA_AGENT_WINDOW].conn_id == conn_id)
			return true;
	return false;
}

/* The counter comes round after 65536 connections; who is still there keeps its number. */
static uint32_t choose_conn_id(struct ha_agent_client *c)
{
	for (unsigned i = 0; i < UINT16_MAX; i++) {
		bool fresh = c->counter <= UINT16_MAX;
		uint32_t id = c->pid << 16 | (c->counter++ & UINT16_MAX);

		if (fresh)
			return id;
		if (!is_listed(&c->waiting, id) && !is_listed(&c->held, id) &&
		    !is_listed(&c->refused, id) && !is_outstanding(c, id))
			return id;
	}
	return c->pid << 16 | (c->counter & UINT16_MAX); /* the agent says that it is taken */
}

void ha_agent_add(struct ha_agent_client *c, struct ha_agent_flow *flow)
{
	atomic_store_explicit(&flow->slot, MPIB_NO_SLOT, memory_order_relaxed);
	flow->conn_id = choose_conn_id(c);
	flow->status = MPIB_STATUS_OK;
	flow->held = flow->asked = flow->announced = false;
	flow->list = NULL;
	move_flow(flow, &c->waiting);
}

/* Without memory it goes unsaid; the agent finds out when the process ends. */
static void send_close(struct ha_agent_client *c, uint32_t conn_id)
{
	if (c->deregister_count == c->room) {
		uint32_t room = c->room ? 2 * c->room : 64;
		uint32_t *more = room > DEREGISTRATIONS_MAX
					 ? NULL
					 : realloc(c->to_deregister, room * sizeof(*more));

		if (!more)
			return;
		c->to_deregister = more;
		c->room = room;
	}
	c->to_deregister[c->deregister_count++] = conn_id;
}

void ha_agent_remove(struct ha_agent_client *c, struct ha_agent_flow *flow)
{
	if (!flow->list)
		return;
	for (unsigned i = 0; flow->asked && i < c->asked; i++) {
		struct ha_agent_question *q = &c->question[(c->first + i) % HA_AGENT_WINDOW];

		if (q->flow == flow)
			q->flow = NULL;
	}
	if (flow->announced)
		send_close(c, flow->conn_id);
	TAILQ_REMOVE(flow->list, flow, entry);
	flow->list = NULL;
	atomic_store_explicit(&flow->slot, MPIB_NO_SLOT, memory_order_relaxed);
}

/* ---- the socket ---- */

/* What was on its way has to be said again. Slots are kept. */
static void hang_up(struct ha_agent_client *c, uint64_t now, enum ha_agent_state why)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->in_len = 0;
	c->state = why;
	for (; c->asked; c->asked--, c->first = (c->first + 1) % HA_AGENT_WINDOW) {
		struct ha_agent_question *q = &c->question[c->first];

		if (q->deregisters)
			send_close(c, q->conn_id);
		else if (q->flow)
			q->flow->asked = false;
	}
	move_all(&c->held, &c->waiting);
	move_all(&c->refused, &c->waiting);
	c->pause = c->pause ? 2 * c->pause : PAUSE_FIRST_NS;
	if (c->pause > PAUSE_LAST_NS)
		c->pause = PAUSE_LAST_NS;
	c->dial_at = now + c->pause;
}

static bool is_trusted(int fd)
{
	struct ucred peer;

	return !ha_socket_peer(fd, &peer) && (peer.uid == 0 || peer.uid == geteuid());
}

static bool has_pending_requests(const struct ha_agent_client *c)
{
	return !TAILQ_EMPTY(&c->waiting) || !TAILQ_EMPTY(&c->held) || !TAILQ_EMPTY(&c->refused) ||
	       c->deregister_count;
}

static void connect_to_agent(struct ha_agent_client *c, uint64_t now)
{
	c->fd = ha_socket_connect_unix(c->path, SOCK_STREAM, 0);
	if (c->fd < 0) {
		/* EAGAIN: its queue is full, it may hang. */
		enum ha_agent_state why = c->fd == -EACCES ? HA_AGENT_REFUSED : HA_AGENT_ABSENT;

		hang_up(c, now, c->fd == -EAGAIN ? HA_AGENT_HANGS : why);
		return;
	}
	c->answered = false;
	if (!is_trusted(c->fd))
		hang_up(c, now, HA_AGENT_REFUSED);
}

/* ---- answers ---- */

static void take_registration(struct ha_agent_client *c, struct ha_agent_flow *flow,
			      uint32_t status, uint32_t slot, uint64_t now)
{
	flow->asked = false;
	flow->status = status;
	flow->held = status == MPIB_STATUS_OK && slot < MPIB_HINT_MAX_ENTRIES;
	atomic_store_explicit(&flow->slot, flow->held ? slot : MPIB_NO_SLOT, memory_order_relaxed);
	if (!flow->held && TAILQ_EMPTY(&c->refused))
		c->refused_at = now;
	move_flow(flow, flow->held ? &c->held : &c->refused);
}

/* Bytes of one answer; 0: not whole yet; -EPROTO: it is none. */
static int take_answer(struct ha_agent_client *c, const uint8_t *at, size_t len, uint64_t now)
{
	const struct ha_agent_question *q = &c->question[c->first];
	struct mpib_register_response r;
	size_t want = q->deregisters ? sizeof(struct mpib_deregister_response) : sizeof(r);

	if (!c->asked)
		return -EPROTO;
	memset(&r, 0, sizeof(r));
	if (len < sizeof(r.header))
		return 0;
	memcpy(&r, at, len < want ? len : want);
	if (r.header.magic != MPIB_REG_MAGIC || r.header.type != MPIB_MSG_RESPONSE ||
	    r.header.length != want)
		return -EPROTO;
	if (len < want)
		return 0;
	if (q->flow)
		take_registration(c, q->flow, r.status, r.hint_slot, now);
	c->first = (c->first + 1) % HA_AGENT_WINDOW;
	c->asked--;
	c->state = HA_AGENT_ANSWERS;
	c->answered = true;
	c->pause = 0;
	return (int)want;
}

static int receive_answers(struct ha_agent_client *c, uint64_t now)
{
	for (;;) {
		ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
		size_t at = 0;
		int used;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
		c->in_len += (size_t)n;
		while (at < c->in_len &&
		       (used = take_answer(c, c->in + at, c->in_len - at, now)) != 0) {
			if (used < 0)
				return used;
			at += (size_t)used;
		}
		c->in_len -= at;
		memmove(c->in, c->in + at, c->in_len);
	}
}

/* ---- questions ---- */

/* false: not now; or the agent is gone, which the next recv says. */
static bool send_message(struct ha_agent_client *c, const void *message, size_t size)
{
	ssize_t n = send(c->fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT);

	/* the kernel takes so few bytes whole; if not, that is the end of this connection */
	if (n > 0 && (size_t)n < size)
		shutdown(c->fd, SHUT_RDWR);
	return n == (ssize_t)size;
}

static void add_question(struct ha_agent_client *c, struct ha_agent_flow *flow, uint32_t conn_id,
			 uint64_t now)
{
	c->question[(c->first + c->asked) % HA_AGENT_WINDOW] = (struct ha_agent_question) {
		.flow = flow, .conn_id = conn_id, .deregisters = !flow, .at = now
	};
	c->asked++;
}

static bool send_registration(struct ha_agent_client *c, struct ha_agent_flow *flow, uint64_t now)
{
	struct mpib_register m = {
		.header = { MPIB_REG_MAGIC, sizeof(m), MPIB_MSG_REGISTER, 0 },
		.conn_id = flow->conn_id,
		.sout_src_ip = flow->sout_src,
		.sout_dst_ip = flow->sout_dst,
		.sup_src_ip = flow->sup_src,
		.sup_dst_ip = flow->sup_dst,
	};

	if (!send_message(c, &m, sizeof(m)))
		return false;
	flow->asked = flow->announced = true;
	add_question(c, flow, flow->conn_id, now);
	return true;
}

static bool send_deregistration(struct ha_agent_client *c, uint32_t conn_id, uint64_t now)
{
	struct mpib_deregister m = { { MPIB_REG_MAGIC, sizeof(m), MPIB_MSG_DEREGISTER, 0 },
				     conn_id };

	if (!send_message(c, &m, sizeof(m)))
		return false;
	add_question(c, NULL, conn_id, now);
	return true;
}

static void send_requests(struct ha_agent_client *c, uint64_t now)
{
	struct ha_agent_flow *flow = TAILQ_FIRST(&c->waiting);

	while (c->deregister_count && c->asked < HA_AGENT_WINDOW &&
	       send_deregistration(c, c->to_deregister[c->deregister_count - 1], now))
		c->deregister_count--;
	for (; flow && c->asked < HA_AGENT_WINDOW; flow = TAILQ_NEXT(flow, entry))
		if (!flow->asked && !send_registration(c, flow, now))
			return;
}

/* ---- rounds ---- */

bool ha_agent_round(struct ha_agent_client *c, uint64_t now)
{
	enum ha_agent_state before = c->state;
	int err;

	if (c->fd < 0 && has_pending_requests(c) && now >= c->dial_at)
		connect_to_agent(c, now);
	if (c->fd < 0)
		return c->state != before;
	if (now - c->refused_at >= RETRY_NS)
		move_all(&c->refused, &c->waiting);
	send_requests(c, now);
	err = receive_answers(c, now);
	if (err)
		/* An agent that turns us away hangs up without an answer. */
		hang_up(c, now,
			err == -EPROTO || !c->answered ? HA_AGENT_REFUSED : HA_AGENT_ABSENT);
	else if (c->asked && now - c->question[c->first].at > ANSWER_LIMIT_NS)
		hang_up(c, now, HA_AGENT_HANGS);
	else
		send_requests(c, now);
	return c->state != before;
}

int ha_agent_refused(const struct ha_agent_client *c, uint32_t *status)
{
	const struct ha_agent_flow *flow;
	int n = 0;

	if (!TAILQ_EMPTY(&c->waiting))
		return -1;
	TAILQ_FOREACH(flow, &c->refused, entry)
		if (!n++)
			*status = flow->status;
	return n;
}

uint64_t ha_agent_due(const struct ha_agent_client *c)
{
	uint64_t due = UINT64_MAX;

	if (c->fd < 0)
		return has_pending_requests(c) ? c->dial_at : UINT64_MAX;
	if (c->asked)
		due = c->question[c->first].at + ANSWER_LIMIT_NS;
	else if (!TAILQ_EMPTY(&c->waiting) || c->deregister_count)
		due = 0;
	if (!TAILQ_EMPTY(&c->refused) && c->refused_at + RETRY_NS < due)
		due = c->refused_at + RETRY_NS;
	return due;
}

const char *ha_agent_state_text(enum ha_agent_state state)
{
	static const char *const texts[] = {
		[HA_AGENT_IDLE] = "not asked yet",
		[HA_AGENT_ABSENT] = "nobody listens; is ha-agent running?",
		[HA_AGENT_REFUSED] = "it is not to be trusted, or turns this user away",
		[HA_AGENT_HANGS] = "it does not answer",
		[HA_AGENT_ANSWERS] = "it answers",
	};

	return texts[state];
}
