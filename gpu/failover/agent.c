/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/failover/agent.h"

#include "gpu/failover/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REST_LOG 6 /* the longest rest is so many doublings of the first */
/* Steps further apart: nobody has run the agent. Of no_path_ns one in so many at most. */
#define STANDSTILL_NS 100000000
#define STANDSTILL_SHARE 8

void ha_gpu_agent_defaults(struct ha_gpu_agent_config *c)
{
	*c = (struct ha_gpu_agent_config) {
		.check_ns = 10000000,
		.recovery_ns = 100000000,
		.no_path_ns = UINT64_C(30000000000),
		.silent_checks = 20,
		.probes = 3,
		.failback = true,
	};
}

int ha_gpu_agent_init(struct ha_gpu_agent *a, struct ha_gpu_conn *conn,
		      const struct ha_gpu_path_ops *ops, void *hw0, void *hw1,
		      const struct ha_gpu_channel *channel,
		      const struct ha_gpu_agent_config *config)
{
	memset(a, 0, sizeof(*a));
	a->log = malloc((size_t)conn->nwqes * sizeof(*a->log));
	if (!a->log)
		return -ENOMEM;
	a->conn = conn;
	a->ops = *ops;
	a->channel = *channel;
	a->config = *config;
	a->path[0].hw = hw0;
	a->path[1].hw = hw1;
	a->carrying = true;
	return 0;
}

void ha_gpu_agent_end(struct ha_gpu_agent *a)
{
	free(a->log);
	a->log = NULL;
}

static unsigned carrying_path(const struct ha_gpu_agent *a)
{
	return (unsigned)ha_gpu_load(&a->conn->active);
}

static struct ha_gpu_path *queue_of(struct ha_gpu_agent *a, unsigned path)
{
	return &a->conn->path[path];
}

static uint64_t index_of(uint64_t word)
{
	return word & HA_GPU_INDEX;
}

/* ---- what the ends send each other ---- */

static void send_message(struct ha_gpu_agent *a, enum ha_gpu_message_type type, unsigned path)
{
	struct ha_gpu_message s = { .type = type,
				    .path = path,
				    .incarnation = a->path[path].incarnation };

	if (type == HA_GPU_MESSAGE_FENCED)
		for (unsigned i = 0; i < HA_GPU_SIGNALS; i++)
			s.slot[i] = ha_gpu_load(&a->conn->mailbox->slot[path][i]);
	if (type == HA_GPU_MESSAGE_JOIN && a->ops.describe)
		a->ops.describe(a->path[path].hw, s.slot);
	if (a->channel.send(a->channel.self, &s))
		a->cut = true;
}

/*
 * An incarnation ends. What has no connection at this end, or is ending already, does so by itself.
 */
static void end_incarnation(struct ha_gpu_agent *a, unsigned path, enum ha_gpu_cause cause)
{
	struct ha_gpu_agent_path *p = &a->path[path];

	if (p->state >= HA_GPU_PATH_CLOSING && p->state <= HA_GPU_PATH_OVER)
		return;
	p->cause = cause;
	/* more make no rest longer */
	p->failures += cause != HA_GPU_CAUSE_FAILBACK && p->failures <= REST_LOG;
	ha_gpu_store(&a->conn->health[path], HA_GPU_FAILED);
	p->state = HA_GPU_PATH_FENCING;
	p->retry_at = 0;
	if (!a->carrying || carrying_path(a) != path)
		return;
	p->state = HA_GPU_PATH_CLOSING;
	a->carrying = false;
	a->last_cause = cause;
	a->no_path_since_ns = a->stepped_ns;
	ha_gpu_or(&a->conn->resv, HA_GPU_CLOSED);
}

static void on_fenced(struct ha_gpu_agent *a, const struct ha_gpu_message *s)
{
	struct ha_gpu_agent_path *p = &a->path[s->path];

	if (s->incarnation < p->incarnation)
		return;
	p->peer_fenced = s->incarnation + 1;
	memcpy(p->landed, s->slot, sizeof(p->landed));
	if (s->incarnation == p->incarnation) {
		end_incarnation(a, s->path, HA_GPU_CAUSE_PEER);
		return;
	}
	p->incarnation = s->incarnation; /* it began at the peer only, and is over */
	p->state = HA_GPU_PATH_FENCED;
	send_message(a, HA_GPU_MESSAGE_FENCED, s->path);
}

static void on_join(struct ha_gpu_agent *a, const struct ha_gpu_message *s)
{
	struct ha_gpu_agent_path *p = &a->path[s->path];

	p->peer_joined = s->incarnation + 1;
	memcpy(p->details, s->slot, sizeof(p->details));
}

/*
 * An incarnation begun here went to where the peer is not any more. Said before the JOIN of the
 * peer's first incarnation there.
 */
static void on_moved(struct ha_gpu_agent *a, const struct ha_gpu_message *s)
{
	struct ha_gpu_agent_path *p = &a->path[s->path];

	if (!a->ops.moved || a->ops.moved(p->hw, s->slot))
		return;
	if (s->incarnation < p->incarnation)
		end_incarnation(a, s->path, HA_GPU_CAUSE_PEER);
}

static bool listen_once(struct ha_gpu_agent *a)
{
	struct ha_gpu_message s;
	int got = a->cut ? 0 : a->channel.receive(a->channel.self, &s);

	if (got < 0)
		a->cut = true;
	if (got <= 0 || s.path >= HA_GPU_PATHS)
		return false;
	if (s.type == HA_GPU_MESSAGE_FENCED)
		on_fenced(a, &s);
	else if (s.type == HA_GPU_MESSAGE_JOIN)
		on_join(a, &s);
	else if (s.type == HA_GPU_MESSAGE_PROVED)
		a->path[s.path].peer_proved = s.incarnation + 1;
	else if (s.type == HA_GPU_MESSAGE_MOVED)
		on_moved(a, &s);
	else if (s.type == HA_GPU_MESSAGE_GAVE_UP)
		a->cut = true;
	return true;
}

/* ---- probes: on paths that do not carry the log the agent is the only one to post ---- */

static void post_probe(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];
	struct ha_gpu_path *q = queue_of(a, path);
	uint32_t word[7] = { (uint32_t)p->posted + 1, 0, 0, 0, 0, 0, 0 };
	struct ha_gpu_wqe e;

	ha_gpu_wqe_inline(&e, q->qpn, (uint16_t)(p->posted << ha_gpu_block_shift(q)),
			  HA_GPU_WQE_SIGNALED, word, 8);
	ha_gpu_wqe_remote(&e,
			  q->mailbox + __builtin_offsetof(struct ha_gpu_mailbox, probe) + 8 * path,
			  q->mailbox_key);
	ha_gpu_write_nth(a->conn, q, p->posted, &e);
	p->posted++;
	ha_gpu_store32(&q->dbrec[HA_GPU_DBR_SEND],
		       ha_gpu_be32((uint32_t)(p->posted << ha_gpu_block_shift(q)) & 0xffff));
	ha_gpu_mmio(ha_gpu_doorbell_register(q), e.w[0]);
	p->probe_late = ha_gpu_now() + a->config.check_ns * a->config.silent_checks;
	a->count.probes++;
}

/* True: something came. An error or too long a silence ends the incarnation. */
static bool look_at_probe(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];
	const uint8_t *cqe;
	uint64_t w, incarnation;

	if (p->posted == p->answered)
		return false;
	w = ha_gpu_take_completion(queue_of(a, path), &cqe, true, &incarnation);
	if (ha_gpu_cqe_opcode(w) == HA_GPU_CQE_REQ &&
	    ha_gpu_cqe_counter(w) ==
		    (uint16_t)((p->posted - 1) << ha_gpu_block_shift(queue_of(a, path)))) {
		p->answered = p->posted;
		p->probe_due = ha_gpu_now() + (p->state == HA_GPU_PATH_UP ? a->config.check_ns : 0);
		return true;
	}
	if (ha_gpu_cqe_opcode(w) == HA_GPU_CQE_REQ_ERR)
		end_incarnation(a, path, HA_GPU_CAUSE_ERROR);
	else if (ha_gpu_now() > p->probe_late)
		end_incarnation(a, path, HA_GPU_CAUSE_SILENCE);
	return p->state == HA_GPU_PATH_FENCING;
}

static bool probe_path(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];

	if (p->posted != p->answered)
		return look_at_probe(a, path);
	if (ha_gpu_now() < p->probe_due)
		return false;
	post_probe(a, path);
	return true;
}

/* ---- a path's states, one function each; true: it moved ---- */

/*
 * Quiet when all that was reserved is published; then nobody but the agent rings, and nobody counts
 * anything as done.
 */
static bool freeze_log(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_conn *c = a->conn;
	uint64_t idle = 0;

	if (ha_gpu_load(&c->ready) != index_of(ha_gpu_load(&c->resv) & ~HA_GPU_DOWN))
		return false;
	if (!ha_gpu_cas(&c->bell, &idle, 1))
		return false;
	ha_gpu_or(&c->tail, HA_GPU_FROZEN);
	a->path[path].state = HA_GPU_PATH_FENCING;
	return true;
}

/*
 * After the fence the completion queue says its last, and the log is taken out of the send queue.
 */
static void take_log(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_conn *c = a->conn;
	struct ha_gpu_path *q = queue_of(a, path);
	uint64_t cons = ha_gpu_poll(c), tail = index_of(ha_gpu_load(&c->tail)),
		 proved = ha_gpu_proved_index(c, cons);

	a->first = proved > tail ? proved : tail;
	a->end = ha_gpu_load(&c->ready);
	for (uint64_t i = a->first; i < a->end; i++)
		ha_gpu_read_entry(c, q, i, &a->log[i & (c->nwqes - 1)]);
}

static bool fence_path(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];
	int r;

	if (ha_gpu_now() < p->retry_at)
		return false;
	r = a->ops.fence(p->hw);
	if (r && r != -EIO) {
		/* refused: it may still take what comes */
		p->retry_at = r == -EAGAIN ? 0 : ha_gpu_now() + a->config.recovery_ns;
		return false;
	}
	if (!a->carrying && carrying_path(a) == path && !a->taken) {
		take_log(a, path);
		a->taken = true;
	}
	p->state = HA_GPU_PATH_FENCED;
	send_message(a, HA_GPU_MESSAGE_FENCED, path);
	return true;
}

static bool check_peer_fenced(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];

	if (p->peer_fenced != p->incarnation + 1)
		return false;
	p->state = HA_GPU_PATH_OVER;
	p->retry_at = ha_gpu_now() + (a->config.recovery_ns << (p->failures ? p->failures - 1 : 0));
	return true;
}

/*
 * Both words carry the incarnation: a thread that took its turn at the queue before the switch, and
 * goes on after, finds that it is another's.
 */
static void restart_completions(struct ha_gpu_path *q, uint64_t incarnation)
{
	ha_gpu_store(&q->cq_ci, incarnation << 48 | HA_GPU_CQ_PROBES);
	if (q->cq_log)
		ha_gpu_store((uint64_t *)(void *)q->cq_dbrec, (incarnation & 0xffff) << 32);
}

/*
 * Our address may have changed while the path was down: the peer gets it before anything of a new
 * incarnation.
 */
static int send_own_address(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_message s = { .type = HA_GPU_MESSAGE_MOVED,
				    .path = path,
				    .incarnation = a->path[path].incarnation };
	int r = a->ops.address ? a->ops.address(a->path[path].hw, s.slot) : 0;

	if (r > 0 && a->channel.send(a->channel.self, &s))
		a->cut = true;
	return a->cut ? -EPIPE : r;
}

static bool reconnect_path(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];
	uint64_t now = ha_gpu_now();

	if (now < p->retry_at || a->cut)
		return false;
	p->retry_at = now + a->config.recovery_ns;
	if (a->ops.port(p->hw) != HA_GPU_PORT_UP || send_own_address(a, path) < 0 ||
	    a->ops.connect(p->hw, p->incarnation + 1))
		return false;
	p->incarnation++;
	p->posted = p->answered = p->probe_due = 0;
	restart_completions(queue_of(a, path), p->incarnation);
	ha_gpu_store(&a->conn->health[path], HA_GPU_RECOVERING);
	p->state = HA_GPU_PATH_JOINED;
	send_message(a, HA_GPU_MESSAGE_JOIN, path);
	return true;
}

static bool check_peer_joined(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];

	if (p->peer_joined != p->incarnation + 1)
		return false;
	p->state = HA_GPU_PATH_PROBING;
	if (a->ops.set_peer && a->ops.set_peer(p->hw, p->details, queue_of(a, path)))
		end_incarnation(a, path, HA_GPU_CAUSE_ERROR);
	return true;
}

static bool prove_path(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];

	if (p->answered < a->config.probes)
		return probe_path(a, path);
	p->state = HA_GPU_PATH_PROVED;
	send_message(a, HA_GPU_MESSAGE_PROVED, path);
	return true;
}

static bool check_peer_proved(struct ha_gpu_agent *a, unsigned path)
{
	struct ha_gpu_agent_path *p = &a->path[path];

	if (p->peer_proved != p->incarnation + 1)
		return false;
	p->state = HA_GPU_PATH_UP;
	p->probe_due = ha_gpu_now() + a->config.check_ns;
	p->forgive_at = ha_gpu_now() + (a->config.recovery_ns << REST_LOG);
	ha_gpu_store(&a->conn->health[path], HA_GPU_GOOD);
	return true;
}

/*
 * A path that has been up for as long as its longest rest would be: an old failure says nothing
 * about the next.
 */
static void forget_failure(struct ha_gpu_agent *a, struct ha_gpu_agent_path *p)
{
	if (!p->failures || ha_gpu_now() < p->forgive_at)
		return;
	p->failures--;
	p->forgive_at += a->config.recovery_ns << REST_LOG;
}

static bool path_step(struct ha_gpu_agent *a, unsigned path)
{
	switch (a->path[path].state) {
	case HA_GPU_PATH_CLOSING:
		return freeze_log(a, path);
	case HA_GPU_PATH_FENCING:
		return fence_path(a, path);
	case HA_GPU_PATH_FENCED:
		return check_peer_fenced(a, path);
	case HA_GPU_PATH_OVER:
		return reconnect_path(a, path);
	case HA_GPU_PATH_JOINED:
		return check_peer_joined(a, path);
	case HA_GPU_PATH_PROBING:
		return prove_path(a, path);
	case HA_GPU_PATH_PROVED:
		return check_peer_proved(a, path);
	case HA_GPU_PATH_UP:
		forget_failure(a, &a->path[path]);
		break;
	}
	return a->carrying && carrying_path(a) == path ? false : probe_path(a, path);
}

/* ---- the path that carries the log ---- */

/* Acknowledged and not proved, and nobody posts: a read of our own. Only where nobody else has
 * reserved: a kernel that died there never publishes, and an agent that waited for its turn behind
 * it could not repair it either. */
static void prove_idle(struct ha_gpu_agent *a, uint64_t cons)
{
	struct ha_gpu_conn *c = a->conn;
	uint64_t ready = ha_gpu_load(&c->ready), resv = ready, tail;
	unsigned n = ha_gpu_count_proofs(c);
	struct ha_gpu_slots s;

	if (a->proof && index_of(cons) >= a->proof) {
		ha_gpu_advance_tail(c, cons, a->proof);
		a->proof = 0;
	}
	tail = index_of(ha_gpu_load(&c->tail));
	if (a->proof || index_of(cons) != ready || tail == ready)
		return;
	ha_gpu_slots_at(c, &s, ready, n);
	if (s.end - tail > c->nwqes || !ha_gpu_cas(&c->resv, &resv, s.end))
		return;
	ha_gpu_write_due(c, ha_gpu_active_path(c), &s, n);
	a->proof = ha_gpu_write_proofs(c, ha_gpu_active_path(c), &s) + 1;
	ha_gpu_publish(c, &s);
	ha_gpu_ring_now(c);
	a->count.proofs++;
}

static bool check_silence(struct ha_gpu_agent *a)
{
	struct ha_gpu_conn *c = a->conn;
	uint64_t cons = ha_gpu_poll(c), alarm = ha_gpu_load(&c->alarm), now = ha_gpu_now();
	unsigned path = carrying_path(a);

	if (cons != a->cons_seen || index_of(cons) == ha_gpu_load(&c->rung)) {
		/* FAILED, too: an error of this incarnation was looked for before */
		if (ha_gpu_load(&c->health[path]) != HA_GPU_GOOD) {
			ha_gpu_store(&c->health[path], HA_GPU_GOOD);
			a->count.cleared++;
		}
		a->silent = 0;
	} else if (now >= a->check_due || alarm != a->alarm_seen) {
		a->silent += now >= a->check_due;
		if (ha_gpu_load(&c->health[path]) == HA_GPU_GOOD)
			ha_gpu_store(&c->health[path], HA_GPU_SUSPECTED);
	}
	a->count.suspicions += alarm - a->alarm_seen;
	if (now >= a->check_due) {
		if (cons == a->cons_seen)
			prove_idle(a, cons);
		a->check_due = now + a->config.check_ns;
	}
	a->cons_seen = cons;
	a->alarm_seen = alarm;
	return a->silent >= a->config.silent_checks;
}

static bool watch_path(struct ha_gpu_agent *a)
{
	struct ha_gpu_conn *c = a->conn;
	uint64_t error = ha_gpu_load(&c->error);
	unsigned path = carrying_path(a);

	if (error && (error & HA_GPU_EPOCH) == (ha_gpu_load(&c->cons) & HA_GPU_EPOCH))
		end_incarnation(a, path, HA_GPU_CAUSE_ERROR);
	else if (error)
		ha_gpu_cas(&c->error, &error, 0); /* of an incarnation that is over */
	else if (a->ops.port(a->path[path].hw) != HA_GPU_PORT_UP)
		end_incarnation(a, path, HA_GPU_CAUSE_PORT);
	else if ((ha_gpu_now() >= a->check_due || ha_gpu_load(&c->alarm) != a->alarm_seen) &&
		 check_silence(a))
		end_incarnation(a, path, HA_GPU_CAUSE_SILENCE);
	else if (a->config.failback && path && a->path[0].state == HA_GPU_PATH_UP)
		end_incarnation(a, path, HA_GPU_CAUSE_FAILBACK);
	return !a->carrying;
}

/* ---- the switch ---- */

static void replay_log(struct ha_gpu_agent *a, unsigned from, unsigned to)
{
	struct ha_gpu_conn *c = a->conn;
	struct ha_gpu_replay r = { .conn = c,
				   .log = a->log,
				   .from = queue_of(a, from),
				   .to = queue_of(a, to),
				   .first = a->first,
				   .end = a->end };

	ha_gpu_store(&queue_of(a, to)->base, a->first - a->path[to].posted);
	r.landed = ha_gpu_replay_landed(&r, a->path[from].landed);
	ha_gpu_replay_copy(&r);
	a->count.switches++;
	a->count.replayed += r.posted;
	a->count.skipped += r.skipped;
}

/*
 * Words in this order: a thread that sees the new epoch in cons sees the path; one that sees it in
 * tail sees cons.
 */
static void open_log(struct ha_gpu_agent *a, unsigned to)
{
	struct ha_gpu_conn *c = a->conn;
	uint64_t epoch = (ha_gpu_load(&c->cons) + HA_GPU_EPOCH_ONE) & HA_GPU_EPOCH;
	uint64_t end = a->end;

	ha_gpu_store(&c->path[to].cq_ci, ha_gpu_load(&c->path[to].cq_ci) & ~HA_GPU_CQ_PROBES);
	ha_gpu_use_path(c, to);
	ha_gpu_store(&c->cons, epoch | a->first);
	ha_gpu_store(&c->error, 0);
	ha_gpu_store(&c->health[to], HA_GPU_GOOD);
	ha_gpu_store(&c->tail, epoch | a->first);
	if (end != a->first)
		ha_gpu_write_doorbell(c, &c->path[to], end);
	ha_gpu_store(&c->rung, end);
	ha_gpu_store_sc(&c->bell, 0);
	ha_gpu_store(&c->resv, end);
}

/* The path in use has ended at both ends: the log goes on over one that is up. */
static bool switch_path(struct ha_gpu_agent *a)
{
	unsigned from = carrying_path(a);

	if (!a->taken || a->path[from].peer_fenced == 0 || a->given_up)
		return false;
	if (a->path[from].state <= HA_GPU_PATH_FENCED && a->path[from].state != HA_GPU_PATH_UP)
		return false;
	for (unsigned to = 0; to < HA_GPU_PATHS; to++) {
		/* A probe under way lies where the last entry of a full log goes. */
		if (a->path[to].state != HA_GPU_PATH_UP ||
		    a->path[to].posted != a->path[to].answered)
			continue;
		replay_log(a, from, to);
		open_log(a, to);
		a->taken = false;
		a->carrying = true;
		a->silent = 0;
		a->proof = 0;
		a->cons_seen = ha_gpu_load(&a->conn->cons);
		a->check_due = ha_gpu_now() + a->config.check_ns;
		return true;
	}
	return false;
}

/* No path, or no peer: what waits ends with BOTH_DOWN. */
static bool give_up(struct ha_gpu_agent *a)
{
	if (a->given_up || (!a->cut && (a->carrying || a->stepped_ns - a->no_path_since_ns <
							       a->config.no_path_ns)))
		return false;
	a->given_up = true;
	if (!a->cut)
		send_message(a, HA_GPU_MESSAGE_GAVE_UP, 0);
	ha_gpu_or(&a->conn->resv, HA_GPU_CLOSED | HA_GPU_DOWN);
	return true;
}

/* Time in which nobody ran the agent, because the process or the machine was stopped, says nothing
 * about paths; be it in the middle of a step, whose time is that of its begin. */
static void leave_out_standstill(struct ha_gpu_agent *a)
{
	uint64_t now = ha_gpu_now(), since = now - a->stepped_ns;
	uint64_t limit = a->config.no_path_ns / STANDSTILL_SHARE;

	if (a->stepped_ns && since > (limit < STANDSTILL_NS ? limit : STANDSTILL_NS))
		a->no_path_since_ns += since;
	a->stepped_ns = now;
}

bool ha_gpu_agent_step(struct ha_gpu_agent *a)
{
	bool moved = false;

	leave_out_standstill(a);
	while (listen_once(a))
		moved = true;
	if (a->conn->proxied && a->carrying)
		moved |= ha_gpu_ring_proxied(a->conn);
	for (unsigned path = 0; path < HA_GPU_PATHS; path++)
		moved |= path_step(a, path);
	if (a->carrying)
		moved |= watch_path(a);
	else
		moved |= switch_path(a);
	return give_up(a) || moved;
}
