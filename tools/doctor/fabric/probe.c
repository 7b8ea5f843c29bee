/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/fabric/probe.h"

#include "tools/doctor/fabric/pace.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugin/ctx.h"
#include "plugin/report/journal.h"
#include "plugin/transfer/guard.h"

#define WINDOW 8            /* messages in flight */
#define MESSAGE (1UL << 20) /* bytes of one, for bandwidth */
#define SMALL (64UL << 10)  /* over a failover: many completions, each a sign */
#define TRIPS_MOST 2048
#define TRIPS_LEAST 16
#define AFTER_FAILOVER 32               /* messages that must follow */
#define WINDOWS 4                       /* of a bandwidth's time */
#define LAST_SIZE 8                     /* bytes of the message that ends a stream */
#define PROTECTION_NS (5 * HA_NS_PER_S) /* at most, for the standby to come up */

size_t fabric_probe_memory(void)
{
	return 2 * WINDOW * MESSAGE;
}

static char *send_memory(const struct fabric_end *end)
{
	return end->memory;
}

static char *recv_memory(const struct fabric_end *end)
{
	return end->memory + WINDOW * MESSAGE;
}

static uint64_t now_ns(void)
{
	return ha_clock_now(&ha_clock_live);
}

static void deadline_set(struct fabric_end *end)
{
	end->deadline = now_ns() + end->options->limit_ns;
}

/* Between two looks. -ETIMEDOUT: it has been long enough. */
static int pause_or_give_up(const struct fabric_end *end, unsigned *looks)
{
	if (++*looks < 64)
		return 0;
	if (*looks % 1024 == 0)
		usleep(100);
	else
		sched_yield();
	return now_ns() > end->deadline ? -ETIMEDOUT : 0;
}

/* ---- connections ---- */

static uint64_t count_protection_events(struct ha_ctx *ctx)
{
	return ha_journal_count(ctx, HA_EVENT_PROTECTED) +
	       ha_journal_count(ctx, HA_EVENT_NOT_PROTECTED);
}

int fabric_end_listen(struct fabric_end *end, void *handle)
{
	end->protections = count_protection_events(end->ctx);
	return ha_listen(end->ctx, end->dev, NULL, handle, &end->listen);
}

static int memory_register(struct fabric_end *end)
{
	size_t size = WINDOW * MESSAGE;
	int err = ha_reg_mr((struct ha_bundle *)end->send, send_memory(end), size, HA_MEM_HOST, 0,
			    -1, 0, &end->send_mr);

	return err ? err
		   : ha_reg_mr((struct ha_bundle *)end->recv, recv_memory(end), size, HA_MEM_HOST,
			       0, -1, 0, &end->recv_mr);
}

int fabric_end_connect(struct fabric_end *end, const void *handle)
{
	unsigned looks = 0;
	int err = 0;

	deadline_set(end);
	while (!err && !(end->send && end->recv)) {
		if (!end->send)
			err = ha_connect(end->ctx, end->dev, NULL, handle, &end->send);
		if (!err && !end->recv)
			err = ha_accept(end->listen, &end->recv);
		if (!err)
			err = pause_or_give_up(end, &looks);
	}
	if (err && !end->send)
		ha_connect_abandon(end->ctx, handle);
	return err ? err : memory_register(end);
}

void fabric_end_close(struct fabric_end *end)
{
	if (end->send_mr)
		(void)ha_dereg_mr((struct ha_bundle *)end->send, end->send_mr);
	if (end->recv_mr)
		(void)ha_dereg_mr((struct ha_bundle *)end->recv, end->recv_mr);
	if (end->send)
		(void)ha_close_send(end->send);
	if (end->recv)
		(void)ha_close_recv(end->recv);
	if (end->listen)
		(void)ha_close_listen(end->listen);
	end->send_mr = end->recv_mr = NULL;
	end->send = NULL;
	end->recv = NULL;
	end->listen = NULL;
}

/* ---- one message ---- */

/* *missing_at, which may be NULL: the last look that did not find it done; 0: there was none. */
static int wait_for(struct fabric_end *end, struct ha_request *request, int *size,
		    uint64_t *missing_at)
{
	uint64_t at = now_ns(), missing = 0;
	unsigned looks = 0;
	int done = 0, err = ha_test(request, &done, size);

	while (!err && !done) {
		missing = at;
		err = pause_or_give_up(end, &looks);
		at = now_ns();
		if (!err)
			err = ha_test(request, &done, size);
	}
	if (missing_at)
		*missing_at = missing;
	return err;
}

static int post_send(struct fabric_end *end, void *data, size_t size, struct ha_request **request)
{
	unsigned looks = 0;
	int err = ha_isend(end->send, data, size, 0, end->send_mr, request);

	while (!err && !*request) {
		err = pause_or_give_up(end, &looks);
		if (!err)
			err = ha_isend(end->send, data, size, 0, end->send_mr, request);
	}
	return err;
}

static int post_receive(struct fabric_end *end, void *data, size_t size,
			struct ha_request **request)
{
	unsigned looks = 0;
	int tag = 0, err;

	do {
		err = ha_irecv(end->recv, 1, &data, &size, &tag, &end->recv_mr, false, request);
		if (!err && !*request)
			err = pause_or_give_up(end, &looks);
	} while (!err && !*request);
	return err;
}

static int word_send(struct fabric_end *end, uint64_t word)
{
	struct ha_request *request;
	int err;

	memcpy(send_memory(end), &word, sizeof(word));
	err = post_send(end, send_memory(end), sizeof(word), &request);
	return err ? err : wait_for(end, request, NULL, NULL);
}

static int word_receive(struct fabric_end *end, struct ha_request *posted, uint64_t *word)
{
	int err = wait_for(end, posted, NULL, NULL);

	memcpy(word, recv_memory(end), sizeof(*word));
	return err;
}

/* ---- latency ---- */

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The word of a trip is its number; 0 is the last one. */
static int trips_make(struct fabric_end *end, uint64_t *ns, int *count)
{
	uint64_t began = now_ns(), word = 1, back;
	struct ha_request *posted;
	int err = 0;

	for (*count = 0; !err && word; (*count)++) {
		uint64_t at = now_ns();
		bool last = *count + 1 == TRIPS_MOST ||
			    (*count + 1 >= TRIPS_LEAST && at - began > end->options->time_ns);

		deadline_set(end);
		word = last ? 0 : (uint64_t)*count + 1;
		err = post_receive(end, recv_memory(end), sizeof(back), &posted);
		if (!err)
			err = word_send(end, word);
		if (!err)
			err = word_receive(end, posted, &back);
		if (!err && back != word)
			err = -EBADMSG;
		ns[*count] = now_ns() - at;
	}
	return err;
}

static int trips_answer(struct fabric_end *end)
{
	struct ha_request *posted;
	uint64_t word = 1;
	int err = 0;

	while (!err && word) {
		deadline_set(end);
		err = post_receive(end, recv_memory(end), sizeof(word), &posted);
		if (!err)
			err = word_receive(end, posted, &word);
		if (!err)
			err = word_send(end, word);
	}
	return err;
}

int fabric_measure_latency(struct fabric_end *end, struct fabric_cell *out, struct fabric_cell *in)
{
	uint64_t *ns;
	size_t middle;
	int count, err;

	if (!end->first)
		return trips_answer(end);
	ns = calloc(TRIPS_MOST, sizeof(*ns));
	if (!ns)
		return -ENOMEM;
	err = trips_make(end, ns, &count);
	if (!err) {
		qsort(ns, (size_t)count, sizeof(*ns), compare_times);
		middle = (size_t)count / 2;
		out->latency_us = in->latency_us = (float)ns[middle] / 2000;
	}
	free(ns);
	return err;
}

/* ---- streams ---- */

/* What goes through the connection one after the other, WINDOW of them at a time. */
struct stream {
	struct fabric_end *end;
	size_t size;
	struct ha_request *request[WINDOW];
	uint64_t posted, done;
	uint64_t last_at, longest_ns; /* the last completion, and the longest time without one */
	uint64_t missing_at;          /* the last look before it that did not find it; 0: none */
};

static void *slot_of(const struct stream *s, char *memory, uint64_t number)
{
	return memory + number % WINDOW * s->size;
}

/* The number of the message is in its first and its last word. */
static void number_write(char *data, size_t size, uint64_t number)
{
	memcpy(data, &number, sizeof(number));
	memcpy(data + size - sizeof(number), &number, sizeof(number));
}

static bool number_fits(const char *data, size_t size, uint64_t number)
{
	return !memcmp(data, &number, sizeof(number)) &&
	       !memcmp(data + size - sizeof(number), &number, sizeof(number));
}

static int stream_post(struct stream *s, size_t size)
{
	char *data = slot_of(s, send_memory(s->end), s->posted);
	int err;

	number_write(data, size, s->posted);
	err = post_send(s->end, data, size, &s->request[s->posted % WINDOW]);
	s->posted += !err;
	return err;
}

static int stream_await(struct stream *s, int *size)
{
	uint64_t now;
	int err;

	deadline_set(s->end);
	err = wait_for(s->end, s->request[s->done % WINDOW], size, &s->missing_at);
	now = now_ns();
	if (s->last_at && now - s->last_at > s->longest_ns)
		s->longest_ns = now - s->last_at;
	s->last_at = now;
	s->done += !err;
	return err;
}

/* As many last messages as the receiver has buffers posted. */
static int stream_end(struct stream *s)
{
	int err = 0;

	for (int i = 0; i < WINDOW && !err; i++) {
		while (!err && s->posted - s->done >= WINDOW)
			err = stream_await(s, NULL);
		deadline_set(s->end);
		if (!err)
			err = stream_post(s, LAST_SIZE);
	}
	while (!err && s->done < s->posted)
		err = stream_await(s, NULL);
	return err;
}

static int stream_send(struct stream *s)
{
	int err = 0;

	if (s->posted - s->done >= WINDOW)
		err = stream_await(s, NULL);
	deadline_set(s->end);
	return err ? err : stream_post(s, s->size);
}

static int buffer_post(struct stream *s)
{
	int err = post_receive(s->end, slot_of(s, recv_memory(s->end), s->posted), s->size,
			       &s->request[s->posted % WINDOW]);

	s->posted += !err;
	return err;
}

/* Until the last messages. -EBADMSG: wrong bytes. */
static int stream_receive(struct fabric_end *end, size_t size, struct pace *pace)
{
	struct stream s = { .end = end, .size = size };
	bool over = false;
	int got, err = 0;

	deadline_set(end);
	while (!err && s.posted < WINDOW)
		err = buffer_post(&s);
	while (!err && s.done < s.posted) {
		const char *data = slot_of(&s, recv_memory(end), s.done);

		err = stream_await(&s, &got);
		if (err)
			break;
		if (!number_fits(data, (size_t)got, s.done - 1))
			return -EBADMSG;
		over = over || got == LAST_SIZE;
		if (over)
			continue;
		pace_count(pace, (uint64_t)got, s.missing_at, s.last_at);
		err = buffer_post(&s);
	}
	return err;
}

static int bandwidth_receive(struct fabric_end *end, struct fabric_cell *in)
{
	struct pace pace;
	int err;

	pace_begin(&pace, end->options->time_ns / WINDOWS, now_ns());
	err = stream_receive(end, MESSAGE, &pace);
	in->mbs = pace_of(&pace);
	return err;
}

static int stream_for(struct fabric_end *end, uint64_t time_ns)
{
	struct stream s = { .end = end, .size = MESSAGE };
	uint64_t began = now_ns();
	int err = 0;

	while (!err && (s.posted < WINDOW || now_ns() - began < time_ns))
		err = stream_send(&s);
	return err ? err : stream_end(&s);
}

int fabric_measure_bandwidth(struct fabric_end *end, struct fabric_cell *in)
{
	int err = end->first ? stream_for(end, end->options->time_ns) : bandwidth_receive(end, in);

	if (err)
		return err;
	return end->first ? bandwidth_receive(end, in) : stream_for(end, end->options->time_ns);
}

/* ---- failover ---- */

/* The queue pair that carries now goes into error, as the driver does it after a fault. */
static int path_break(struct ha_send *send)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ha_bundle *b = (struct ha_bundle *)send;
	const struct ha_verbs_ops *verbs = b->ctx->verbs;
	int err = -EAGAIN;

	if (ha_bundle_enter(b) == HA_NOT_NOW)
		return err;
	if (b->active)
		err = verbs->modify_qp(verbs, b->rail[__builtin_ctz(b->active)].qp, &attr,
				       IBV_QP_STATE);
	ha_bundle_leave(b);
	return err;
}

/* Both of this end's connections have said whether they are protected. Without a standby the path
 * is made anew: no reason not to try. */
static void await_protection(struct fabric_end *end)
{
	uint64_t until = now_ns() + PROTECTION_NS;

	while (count_protection_events(end->ctx) < end->protections + 2 && now_ns() < until)
		usleep(500);
}

static int broken_stream(struct stream *s)
{
	struct fabric_end *end = s->end;
	uint64_t before = ha_journal_count(end->ctx, HA_EVENT_FAILED_OVER), until = 0;
	uint64_t limit = now_ns() + end->options->limit_ns;
	bool broken = false;
	int err = 0;

	while (!err && (!until || s->posted < until)) {
		err = stream_send(s);
		if (!err && !until && now_ns() > limit)
			err = -ETIMEDOUT;
		if (!err && !broken && s->done >= WINDOW) {
			err = path_break(end->send);
			broken = !err;
			err = err == -EAGAIN ? 0 : err;
			s->longest_ns = 0;
		}
		if (!until && ha_journal_count(end->ctx, HA_EVENT_FAILED_OVER) > before)
			until = s->posted + AFTER_FAILOVER;
	}
	return err ? err : stream_end(s);
}

static int failover_send(struct fabric_end *end, struct fabric_cell *out)
{
	struct stream s = { .end = end, .size = SMALL };
	int err = broken_stream(&s);

	out->failover = err ? FABRIC_FAILED : FABRIC_SURVIVED;
	out->lost_error = err;
	out->stall_ms = (float)s.longest_ns / 1e6f;
	return err;
}

static int failover_receive(struct fabric_end *end, struct fabric_cell *in)
{
	struct pace unused = { 0 };
	int err = stream_receive(end, SMALL, &unused);

	if (err == -EBADMSG)
		in->state = FABRIC_CORRUPT;
	if (err)
		in->failover = FABRIC_FAILED;
	return err;
}

int fabric_measure_failover(struct fabric_end *end, struct fabric_cell *out, struct fabric_cell *in)
{
	int err;

	await_protection(end);
	err = end->first ? failover_send(end, out) : failover_receive(end, in);
	if (err)
		return err;
	return end->first ? failover_receive(end, in) : failover_send(end, out);
}
