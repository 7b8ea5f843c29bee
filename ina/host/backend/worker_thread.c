/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/worker_thread.h"

#include "base/log.h"
#include "ina/host/backend/member.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define NOTES 64 /* taken in one round */
#define PUBLISH_NS (5 * HA_NS_PER_MS)

/* ---- to the balancer ---- */

/* There is always room: the balancer counts what it has out (balancer.c, "credit"). */
static void push_note(struct ha_worker_thread *w, enum ha_note_kind kind, int err, void *what)
{
	struct ha_note note = { kind, err, what };
	bool pushed = ha_spsc_push(&w->out, &note);

	assert(pushed);
	(void)pushed;
	ha_sleeper_wake(w->balancer);
}

static void part_done(struct ha_part *part, void *arg)
{
	push_note(arg, HA_NOTE_DONE, part->result, part);
}

static void report_failure(struct ha_worker_thread *w, struct ha_stream *s)
{
	if (!s->worker.error || s->reported || s->leaving)
		return;
	s->reported = true;
	push_note(w, HA_NOTE_FAILED, s->worker.error, s);
}

/* ---- streams ---- */

static void send_frame(void *arg, const struct ina_frame *frame)
{
	struct ha_worker_thread *w = arg;

	w->net->ops->send(w->net, w->number, frame);
}

static void fill_config(const struct ha_worker_thread *w, const struct ha_member *m,
			struct ina_worker_config *c)
{
	const struct ha_group_facts *g = &m->group;

	memset(c, 0, sizeof(*c));
	ina_worker_defaults(c);
	c->addr = w->net->addr;
	c->switch_addr = g->switch_addr;
	memcpy(c->mac, w->net->mac, 6);
	memcpy(c->switch_mac, g->switch_mac, 6);
	c->group = g->id;
	c->rank = (uint8_t)m->rank;
	c->ranks = g->ranks;
	c->worker = (uint8_t)w->number;
	c->workers = g->workers;
	c->extended = g->extended;
	c->base = g->base;
	c->len = g->len;
	c->epoch = g->epoch;
	c->peer_ns = w->limits.peer_ns;
	c->switch_ns = w->limits.switch_ns;
}

static void add_stream(struct ha_worker_thread *w, struct ha_stream *s)
{
	const struct ha_member *m = s->member;
	struct ina_worker_config c;
	const char *why = NULL;
	int err;

	fill_config(w, m, &c);
	err = ina_worker_init(&s->worker, &c, &w->own.clock.clock,
			      &(struct ina_worker_ops) { send_frame, w }, s->entry, s->capacity,
			      &why);
	if (err) { /* a group that cannot be: whoever gave it is wrong */
		memset(&s->worker, 0, sizeof(s->worker));
		s->worker.config = c;
		s->worker.error = err;
		snprintf(s->worker.why, sizeof(s->worker.why), "group %u, rank %u: %s", m->group.id,
			 m->rank, why);
	}
	s->started = true;
	LIST_INSERT_HEAD(&w->own.streams, s, link);
	LIST_INSERT_HEAD(&w->own.same[m->group.id][m->rank], s, same);
	report_failure(w, s);
}

static void unlink_stream(struct ha_worker_thread *w, struct ha_stream *s)
{
	LIST_REMOVE(s, link);
	LIST_REMOVE(s, same);
	if (w->own.busy == s)
		w->own.busy = NULL;
#define X(name, help) w->own.gone.name += s->worker.count.name;
	INA_COUNTER_LIST(X)
#undef X
}

/*
 * A client that leaves with nothing in flight does not disturb the other ranks; all else ends the
 * group for them, too. Its operations end at once, but the stream stays, and with it this rank's
 * place in the group, until the switch knows.
 */
static void remove_stream(struct ha_stream *s, int err)
{
	if (err || !STAILQ_EMPTY(&s->worker.posted))
		ina_worker_abort(&s->worker, err ? err : -ECANCELED, s->member->remove_why);
	s->leaving = true;
}

/* True: it is gone. */
static bool has_left(struct ha_worker_thread *w, struct ha_stream *s)
{
	if (!s->leaving || ina_worker_is_aborting(&s->worker))
		return false;
	unlink_stream(w, s);
	push_note(w, HA_NOTE_REMOVED, 0, s);
	return true;
}

static void post_part(struct ha_worker_thread *w, struct ha_part *p)
{
	int err;

	w->own.operations++;
	w->own.busy = p->stream;
	p->done = part_done;
	p->arg = w;
	if (w->limits.loop) {
		ha_part_loop(p, p->stream->member->rank, p->stream->member->group.ranks);
		part_done(p, w);
		return;
	}
	err = ina_worker_post(&p->stream->worker, &p->op);
	if (err) {
		p->result = err;
		part_done(p, w);
	}
}

static bool take_notes(struct ha_worker_thread *w)
{
	struct ha_note note;
	unsigned n = 0;

	while (n < NOTES && ha_spsc_pop(&w->in, &note)) {
		struct ha_stream *s = note.what;

		n++;
		switch (note.kind) {
		case HA_NOTE_ADD:
			add_stream(w, s);
			break;
		case HA_NOTE_POST:
			post_part(w, note.what);
			break;
		case HA_NOTE_ABORT:
			ina_worker_abort(&s->worker, note.err, s->member->why);
			report_failure(w, s);
			break;
		case HA_NOTE_REMOVE:
			remove_stream(s, note.err);
			break;
		}
	}
	return n > 0;
}

/* ---- packets ---- */

/*
 * Several switches may each have a group of this number, and an earlier incarnation of it may still
 * be known here.
 */
static struct ha_stream *stream_of(const struct ha_worker_thread *w, const struct ina_frame *f)
{
	const struct ha_stream_list *same = &w->own.same[f->group][f->rank];
	struct ha_stream *s, *first = LIST_FIRST(same);

	if (!first || !LIST_NEXT(first, same))
		return first;
	LIST_FOREACH(s, same, same)
		if (s->worker.config.switch_addr == f->src &&
		    (!f->extended || s->worker.config.epoch == f->epoch))
			return s;
	return first;
}

static void take_packet(struct ha_worker_thread *w, const struct ha_net_packet *p)
{
	struct ina_frame f;
	enum ina_fault fault = ina_frame_decode(p->bytes, p->len, &f);
	struct ha_stream *s;

	if (fault == INA_FAULT_NOT_OURS)
		return;
	w->own.frames++;
	if (fault) {
		w->own.faulty++;
		return;
	}
	s = stream_of(w, &f);
	if (!s) {
		w->own.foreign++;
		return;
	}
	ina_worker_receive(&s->worker, &f);
	report_failure(w, s);
}

static bool take_packets(struct ha_worker_thread *w)
{
	struct ha_net_packet packet[HA_NET_BURST];
	unsigned n = w->net->ops->receive(w->net, w->number, packet, HA_NET_BURST);

	for (unsigned i = 0; i < n; i++)
		take_packet(w, &packet[i]);
	return n > 0;
}

/* ---- time ---- */

static bool poll_streams(struct ha_worker_thread *w)
{
	struct ha_stream *next;
	bool sent = false;

	for (struct ha_stream *s = LIST_FIRST(&w->own.streams); s; s = next) {
		next = LIST_NEXT(s, link);
		if (has_left(w, s) || ina_worker_due(&s->worker) > w->own.clock.now)
			continue;
		sent |= ina_worker_poll(&s->worker);
		report_failure(w, s);
	}
	return sent;
}

static uint64_t next_due(const struct ha_worker_thread *w)
{
	const struct ha_stream *s;
	uint64_t due = UINT64_MAX;

	LIST_FOREACH(s, &w->own.streams, link) {
		uint64_t d = ina_worker_due(&s->worker);

		due = d < due ? d : due;
	}
	return due;
}

static void store_counter(_Atomic uint64_t *to, uint64_t value)
{
	atomic_store_explicit(to, value, memory_order_relaxed);
}

static void publish_stats(struct ha_worker_thread *w)
{
	struct ina_counters sum = w->own.gone;
	const struct ha_stream *b = w->own.busy ? w->own.busy : LIST_FIRST(&w->own.streams), *s;
	uint32_t streams = 0, window = 0;

	LIST_FOREACH(s, &w->own.streams, link) {
#define X(name, help) sum.name += s->worker.count.name;
		INA_COUNTER_LIST(X)
#undef X
		streams++;
		window += ina_worker_in_flight(&s->worker);
	}
#define X(name, help) store_counter(&w->stats.name, sum.name);
	INA_COUNTER_LIST(X)
#undef X
#define X(name, help) store_counter(&w->stats.name, w->own.name);
	HA_WORKER_COUNTERS(X)
#undef X
	atomic_store_explicit(&w->stats.streams, streams, memory_order_relaxed);
	atomic_store_explicit(&w->stats.window, window, memory_order_relaxed);
	atomic_store_explicit(&w->stats.left_psn, b ? b->worker.left : 0, memory_order_relaxed);
	atomic_store_explicit(&w->stats.right_psn, b ? b->worker.next : 0, memory_order_relaxed);
	atomic_store_explicit(&w->stats.cwnd_tenths, b ? (uint32_t)(b->worker.cwnd.cwnd * 10) : 0,
			      memory_order_relaxed);
	w->own.published_at = w->own.clock.now;
}

static void wait_for_work(struct ha_worker_thread *w)
{
	int fd = w->net->ops->fd(w->net, w->number);
	uint64_t due = next_due(w), now = ha_clock_now(w->own.source), wait = due,
		 most = UINT64_MAX;

	publish_stats(w);
	ha_sleeper_announce(&w->sleeper);
	if (!ha_spsc_empty(&w->in) || atomic_load_explicit(&w->stop, memory_order_acquire)) {
		ha_sleeper_stay(&w->sleeper);
		return;
	}
	if (due != UINT64_MAX)
		wait = due > now ? due - now : 0;
	/* packets cannot wake us: look from time to time */
	if (fd < 0)
		most = due == UINT64_MAX ? HA_IDLE_SLEEP_MAX_NS
					 : ha_idle_sleep_ns(now - w->own.worked_at);
	w->own.sleeps++;
	ha_sleeper_wait(&w->sleeper, fd, wait < most ? wait : most);
}

static void round_of(struct ha_worker_thread *w)
{
	bool worked;

	w->own.clock.now = ha_clock_now(w->own.source);
	worked = take_packets(w);
	worked |= take_notes(w);
	worked |= poll_streams(w);
	w->net->ops->flush(w->net, w->number);
	if (w->own.clock.now - w->own.published_at >= PUBLISH_NS)
		publish_stats(w);
	if (worked)
		w->own.worked_at = w->own.clock.now;
	else if (w->own.clock.now - w->own.worked_at >= w->limits.idle_ns ||
		 (w->limits.shared && !ha_yield(&w->own.yield)))
		wait_for_work(w);
}

/* ---- the thread ---- */

static void pin_thread(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (pthread_setaffinity_np(pthread_self(), sizeof(set), &set))
		HA_WARN(NULL,
			"a worker cannot be pinned to processor %d; it runs where the system puts "
			"it",
			cpu);
}

static void *run_worker(void *arg)
{
	struct ha_worker_thread *w = arg;
	char name[16];

	snprintf(name, sizeof(name), "ina-worker-%u", w->number);
	pthread_setname_np(pthread_self(), name);
	pin_thread(w->cpu);
	ha_set_exact_sleeps();
	if (w->net->ops->begin)
		w->net->ops->begin(w->net, w->number);
	while (!atomic_load_explicit(&w->stop, memory_order_acquire))
		round_of(w);
	w->net->ops->flush(w->net, w->number);
	if (w->net->ops->end)
		w->net->ops->end(w->net, w->number);
	return NULL;
}

int ha_worker_thread_start(struct ha_worker_thread *w)
{
	int err = ha_sleeper_open(&w->sleeper);

	if (err)
		return err;
	w->own.source = &ha_clock_live;
	w->own.clock = (struct ha_clock_virtual)HA_CLOCK_VIRTUAL_INIT(ha_clock_now(&ha_clock_live));
	err = -pthread_create(&w->thread, NULL, run_worker, w);
	if (err)
		ha_sleeper_close(&w->sleeper);
	w->running = !err;
	return err;
}

void ha_worker_thread_stop(struct ha_worker_thread *w)
{
	if (!w->running)
		return;
	atomic_store_explicit(&w->stop, true, memory_order_release);
	ha_sleeper_ring(&w->sleeper);
	pthread_join(w->thread, NULL);
	ha_sleeper_close(&w->sleeper);
	w->running = false;
}
