/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/balancer.h"

#include "base/clock.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS 16 /* taken from one client before the next one's turn */
/*
 * Credit: of a ring's notes at most so many are parts. Members need three notes each to the worker
 * (add, abort, remove) and two back (failed, removed), so neither ring can ever be full.
 */
#define CREDIT (HA_SPSC_NOTES / 2)
static_assert(HA_SPSC_NOTES - CREDIT >= 4 * HA_MEMBERS, "room for what is not a part");

static void add_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static void push_note(struct ha_balancer *b, unsigned worker, enum ha_note_kind kind, int err,
		      void *what)
{
	struct ha_note note = { kind, err, what };
	bool pushed = ha_spsc_push(&b->worker[worker]->in, &note);

	assert(pushed);
	(void)pushed;
	ha_sleeper_wake(&b->worker[worker]->sleeper);
}

/* ---- responses ---- */

static void send_response(struct ha_balancer *b, struct ha_peer *p, uint64_t sequence, int result,
			  uint32_t met, uint64_t bytes)
{
	struct ina_shm_response r = { .sequence = sequence, .result = result, .met = met };

	/* Relaxed: set before the messages that the ends of ranks come from. */
	if (result == -ECANCELED && atomic_load_explicit(&b->closing, memory_order_relaxed))
		r.result = -ENOTCONN;
	add_count(&b->stats.failed, result != 0);
	add_count(&b->stats.saturated, !!(met & HA_INA_SATURATED));
	add_count(&b->stats.nonfinite, !!(met & HA_INA_NONFINITE));
	add_count(&b->stats.bytes, result ? 0 : bytes);
	ina_shm_peer_respond(p->shm, &r);
}

static void look_at_drop(struct ha_balancer *b, struct ha_peer *p)
{
	if (p->leaving && !p->jobs && !p->members)
		ha_mailbox_send(b->control, &p->dropped, HA_MESSAGE_DROPPED, p);
}

static uint64_t bytes_of(const struct ha_job *job, unsigned workers)
{
	uint64_t blocks = 0;

	for (unsigned i = 0; i < workers; i++)
		blocks += job->part[i].op.packets;
	return blocks * INA_PAYLOAD_BYTES;
}

/* In the order of the requests: what is done waits for those before it. */
static void answer_done(struct ha_balancer *b, struct ha_member *m)
{
	struct ha_job *job;

	while ((job = STAILQ_FIRST(&m->jobs)) && !job->left) {
		struct ha_peer *p = job->peer;

		STAILQ_REMOVE_HEAD(&m->jobs, link);
		send_response(b, p, job->sequence, job->result, job->met,
			      bytes_of(job, m->nstreams));
		ha_peer_job_end(p, job);
	}
}

static void part_done(struct ha_balancer *b, unsigned worker, struct ha_part *part)
{
	struct ha_job *job = part->job;

	b->own.out[worker]--;
	job->left--;
	job->met |= part->met;
	if (!job->result)
		job->result = part->result;
	if (!job->left)
		answer_done(b, job->member);
}

/* ---- the end of a group ---- */

/* By what one worker has met, or control has learned: for all workers. `but` knows it already. */
static void end_member(struct ha_balancer *b, struct ha_member *m, int err, const char *why,
		       const struct ha_stream *but)
{
	if (m->over || m->leaving)
		return;
	m->over = true;
	m->err = err;
	snprintf(m->why, sizeof(m->why), "%s", why);
	for (unsigned i = 0; i < m->nstreams; i++)
		if (&m->stream[i] != but)
			push_note(b, i, HA_NOTE_ABORT, err, &m->stream[i]);
	ha_mailbox_send(b->control, &m->ended, HA_MESSAGE_ENDED, m);
}

static void stream_failed(struct ha_balancer *b, struct ha_stream *s, int err)
{
	end_member(b, s->member, err, s->worker.why, s);
}

static void stream_removed(struct ha_balancer *b, struct ha_stream *s)
{
	struct ha_member *m = s->member;
	struct ha_peer *p = m->peer;

	if (--m->streams_left)
		return;
	assert(STAILQ_EMPTY(&m->jobs)); /* each worker has answered its parts before */
	b->own.member[m->handle % HA_MEMBERS] = NULL;
	p->members--;
	ha_mailbox_send(b->control, &m->removed, HA_MESSAGE_REMOVED, m);
	look_at_drop(b, p);
}

static bool take_notes(struct ha_balancer *b, unsigned worker)
{
	struct ha_note note;
	bool any = false;

	while (ha_spsc_pop(&b->worker[worker]->out, &note)) {
		any = true;
		if (note.kind == HA_NOTE_DONE)
			part_done(b, worker, note.what);
		else if (note.kind == HA_NOTE_FAILED)
			stream_failed(b, note.what, note.err);
		else
			stream_removed(b, note.what);
	}
	return any;
}

/* ---- requests ---- */

static struct ha_member *member_of(const struct ha_balancer *b, const struct ha_peer *p,
				   uint32_t handle)
{
	struct ha_member *m = b->own.member[handle % HA_MEMBERS];

	return m && m->peer == p && m->handle == handle && !m->leaving ? m : NULL;
}

/* 0, or what the request ends with at once. */
static int check_request(const struct ha_balancer *b, const struct ha_peer *p,
			 const struct ha_member *m, const struct ina_shm_request *r)
{
	uint32_t at = r->group % HA_MEMBERS;

	if (!m)
		return b->own.left[at].peer == p && b->own.left[at].handle == r->group ? -ECANCELED
										       : -EINVAL;
	if (r->root >= m->group.ranks)
		return -EINVAL;
	if (m->over)
		return m->err;
	/* The old frame has no room for exponents. */
	if (r->type == HA_INA_FLOAT32 && !m->group.extended && r->coll != HA_INA_BROADCAST &&
	    r->coll != HA_INA_ALL_GATHER)
		return -EOPNOTSUPP;
	return 0;
}

static bool has_credit(const struct ha_balancer *b)
{
	for (unsigned i = 0; i < b->workers; i++)
		if (b->own.out[i] == CREDIT)
			return false;
	return true;
}

static void split_job(struct ha_balancer *b, struct ha_job *job, const struct ina_shm_request *r)
{
	struct ha_member *m = job->member;
	uint32_t blocks = ina_shm_blocks(r->bytes) / INA_SHM_BLOCK;
	uint8_t *data = job->peer->buffer + r->offset;
	unsigned parts = blocks < m->nstreams ? blocks : m->nstreams;

	job->left = parts;
	for (unsigned i = 0; i < m->nstreams; i++) {
		struct ha_part *part = &job->part[i];

		part->op = (struct ina_op) { .coll = r->coll,
					     .root = r->root,
					     .packets = ha_share(blocks, m->nstreams, i) };
		part->stream = &m->stream[i];
		part->job = job;
		part->data = data;
		part->lost = job->peer->lost;
		part->type = r->type;
		ha_part_prepare(part);
		data += (size_t)part->op.packets * INA_PAYLOAD_BYTES;
	}
	for (unsigned i = 0; i < parts; i++) {
		b->own.out[i]++;
		push_note(b, i, HA_NOTE_POST, 0, &job->part[i]);
	}
}

/* NETCCL_LB_LOOPBACK: done here and now. */
static void loop_job(struct ha_balancer *b, struct ha_job *job, const struct ina_shm_request *r)
{
	const struct ha_member *m = job->member;
	struct ha_part *part = &job->part[0];

	part->op = (struct ina_op) { .coll = r->coll,
				     .root = r->root,
				     .packets = ina_shm_blocks(r->bytes) / INA_SHM_BLOCK };
	part->data = job->peer->buffer + r->offset;
	part->type = r->type;
	part->met = 0;
	ha_part_loop(part, m->rank, m->group.ranks);
	send_response(b, job->peer, r->sequence, 0, part->met, ina_shm_blocks(r->bytes));
	ha_peer_job_end(job->peer, job);
}

static void begin_request(struct ha_balancer *b, struct ha_peer *p, const struct ina_shm_request *r)
{
	struct ha_member *m = member_of(b, p, r->group);
	struct ha_job *job;
	int err;

	add_count(&b->stats.requests, 1);
	err = check_request(b, p, m, r);
	if (err) {
		add_count(&b->stats.refused, 1);
		send_response(b, p, r->sequence, err, 0, 0);
		return;
	}
	job = ha_peer_job(p);
	assert(job); /* as many as the ring lets be without a response */
	job->peer = p;
	job->member = m;
	job->sequence = r->sequence;
	job->result = 0;
	job->met = 0;
	if (b->loop) {
		loop_job(b, job, r);
		return;
	}
	STAILQ_INSERT_TAIL(&m->jobs, job, link);
	split_job(b, job, r);
}

static bool take_requests(struct ha_balancer *b, struct ha_peer *p)
{
	struct ina_shm_request r;
	bool any = false;

	for (unsigned n = 0; n < REQUESTS && !p->mute && has_credit(b); n++) {
		int got = ina_shm_peer_next(p->shm, &r);

		if (got < 0)
			p->mute = true; /* it did wrong; control learns that it has gone */
		if (got <= 0)
			break;
		any = true;
		begin_request(b, p, &r);
	}
	return any;
}

/* ---- messages ---- */

static void add_member(struct ha_balancer *b, struct ha_member *m)
{
	b->own.member[m->handle % HA_MEMBERS] = m;
	m->peer->members++;
	m->streams_left = m->nstreams;
	for (unsigned i = 0; i < m->nstreams; i++)
		push_note(b, i, HA_NOTE_ADD, 0, &m->stream[i]);
	ha_mailbox_send(b->control, &m->add, HA_MESSAGE_ADDED, m);
}

/*
 * What the client had pushed before it left counts as in flight: it is taken first. If there is no
 * room for it the group ends for all, as it would with that.
 */
static void remove_member(struct ha_balancer *b, struct ha_member *m)
{
	int err = m->remove_err;
	unsigned turns = INA_SHM_ENTRIES / REQUESTS; /* who pushes on and on does not hold us up */

	while (m->remove_asked && turns-- && take_requests(b, m->peer))
		;
	if (!err && !has_credit(b))
		err = -ECANCELED;
	m->leaving = true;
	b->own.left[m->handle % HA_MEMBERS].peer = m->peer;
	b->own.left[m->handle % HA_MEMBERS].handle = m->handle;
	for (unsigned i = 0; i < m->nstreams; i++)
		push_note(b, i, HA_NOTE_REMOVE, err, &m->stream[i]);
}

static void remove_peer(struct ha_balancer *b, struct ha_peer *p)
{
	LIST_REMOVE(p, link);
	p->leaving = true;
	look_at_drop(b, p);
}

static bool take_messages(struct ha_balancer *b)
{
	struct ha_message *message;
	bool any = false;

	while ((message = ha_mailbox_take(&b->mailbox))) {
		struct ha_peer *p = message->what;
		struct ha_member *m = message->what;

		any = true;
		switch (message->kind) {
		case HA_MESSAGE_PEER_CAME:
			LIST_INSERT_HEAD(&b->own.peers, p, link);
			break;
		case HA_MESSAGE_PEER_GONE:
			remove_peer(b, p);
			break;
		case HA_MESSAGE_ADD:
			add_member(b, m);
			break;
		case HA_MESSAGE_END:
			end_member(b, m, m->end_err, m->end_why, NULL);
			break;
		case HA_MESSAGE_REMOVE:
			remove_member(b, m);
			break;
		}
	}
	return any;
}

/* ---- the thread ---- */

/* True: nobody has anything for us. */
static bool all_asleep(struct ha_balancer *b)
{
	struct ha_peer *p;

	for (unsigned i = 0; i < b->workers; i++)
		if (!ha_spsc_empty(&b->worker[i]->out))
			return false;
	LIST_FOREACH(p, &b->own.peers, link)
		if (!p->mute && !ina_shm_peer_sleep(p->shm))
			return false;
	return !ha_mailbox_filled(&b->mailbox) &&
	       !atomic_load_explicit(&b->stop, memory_order_acquire);
}

static void wait_for_work(struct ha_balancer *b)
{
	struct ha_peer *p;

	ha_sleeper_announce(&b->sleeper);
	if (all_asleep(b)) {
		add_count(&b->stats.balancer_sleeps, 1);
		ha_sleeper_wait(&b->sleeper, -1, UINT64_MAX);
	} else {
		ha_sleeper_stay(&b->sleeper);
	}
	LIST_FOREACH(p, &b->own.peers, link)
		if (!p->mute)
			ina_shm_peer_awake(p->shm);
}

static void round_of(struct ha_balancer *b)
{
	bool worked = take_messages(b);
	struct ha_peer *p;
	uint64_t now;

	for (unsigned i = 0; i < b->workers; i++)
		worked |= take_notes(b, i);
	LIST_FOREACH(p, &b->own.peers, link)
		worked |= take_requests(b, p);
	now = ha_clock_now(&ha_clock_live);
	if (worked)
		b->own.worked_at = now;
	else if (now - b->own.worked_at >= b->idle_ns || (b->shared && !ha_yield(&b->own.yield)))
		wait_for_work(b);
}

static void *run_balancer(void *arg)
{
	struct ha_balancer *b = arg;
	cpu_set_t set;

	pthread_setname_np(pthread_self(), "ina-balancer");
	if (b->cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET(b->cpu, &set);
		if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
			HA_WARN(NULL,
				"the load balancer cannot be pinned to processor %d; it runs where "
				"the system puts it",
				b->cpu);
	}
	while (!atomic_load_explicit(&b->stop, memory_order_acquire))
		round_of(b);
	return NULL;
}

int ha_balancer_open(struct ha_balancer *b)
{
	int err = ha_sleeper_open(&b->sleeper);

	if (err)
		return err;
	ha_mailbox_open(&b->mailbox, &b->sleeper);
	b->own.out = calloc(b->workers, sizeof(*b->own.out));
	b->open = true;
	return b->own.out ? 0 : -ENOMEM;
}

int ha_balancer_start(struct ha_balancer *b)
{
	int err = -pthread_create(&b->thread, NULL, run_balancer, b);

	b->running = !err;
	return err;
}

void ha_balancer_stop(struct ha_balancer *b)
{
	if (!b->running)
		return;
	atomic_store_explicit(&b->stop, true, memory_order_release);
	ha_sleeper_ring(&b->sleeper);
	pthread_join(b->thread, NULL);
	b->running = false;
}

void ha_balancer_close(struct ha_balancer *b)
{
	if (!b->open)
		return;
	ha_sleeper_close(&b->sleeper);
	ha_mailbox_close(&b->mailbox);
	free(b->own.out);
	b->open = false;
}
