/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/sender.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/utf8.h"

#define FIRST_PAUSE_NS HA_NS_PER_S
#define LONGEST_PAUSE_NS (60 * HA_NS_PER_S)
#define DOUBLINGS 6    /* from the first pause to the longest */
#define WAIT_MAX_S 300 /* that a receiver may ask for */

/* ---- what the operator reads ---- */

/* The text came from somewhere else. */
static void print_tame(const char *text, FILE *out)
{
	while (*text) {
		int n = ha_utf8_printable(text, ha_utf8(text)) ? ha_utf8(text) : 0;

		if (n)
			fprintf(out, "%.*s", n, text);
		else
			fputc(' ', out);
		text += n ? n : 1;
	}
}

static void report_failure(struct sender *s, const struct answer *answer,
			   enum sender_verdict verdict)
{
	char status[32] = "";

	if (s->refused)
		return;
	s->refused = true;
	if (answer->status)
		snprintf(status, sizeof(status), "HTTP %ld%s", answer->status,
			 *answer->text ? ": " : "");
	flockfile(stderr);
	fprintf(stderr, "hawser-exporter: %s takes no events: %s", s->name, status);
	print_tame(answer->text, stderr);
	fprintf(stderr, "%s; %s\n", s->advice ? s->advice : "",
		verdict == SENDER_REFUSED ? "dropped" : "tried again, with pauses");
	funlockfile(stderr);
}

static void report_recovery(struct sender *s)
{
	if (!s->refused)
		return;
	s->refused = false;
	fprintf(stderr, "hawser-exporter: %s takes events again; %llu were dropped so far\n",
		s->name, (unsigned long long)s->counts.dropped);
}

/* ---- counting ---- */

void sender_accept(struct sender *s)
{
	s->counts.waiting++;
	pthread_cond_signal(&s->wake);
}

void sender_settle(struct sender *s, uint64_t n, bool sent)
{
	s->counts.waiting -= n;
	s->counts.sent += sent ? n : 0;
	s->counts.dropped += sent ? 0 : n;
}

struct sender_counts sender_counts(struct sender *s)
{
	struct sender_counts counts;

	pthread_mutex_lock(&s->lock);
	counts = s->counts;
	pthread_mutex_unlock(&s->lock);
	return counts;
}

/* ---- the thread ---- */

enum sender_verdict sender_judge(long status)
{
	if (status / 100 == 2)
		return SENDER_TAKEN;
	if (!status || status == 408 || status == 429 || status / 100 == 5)
		return SENDER_AGAIN;
	return SENDER_REFUSED;
}

static bool is_over(const struct sender *s)
{
	return s->deadline && ha_clock_now(&ha_clock_live) >= s->deadline;
}

/* For libcurl, while a request is on its way. */
static bool is_stopped(void *user)
{
	struct sender *s = user;
	bool over;

	pthread_mutex_lock(&s->lock);
	over = is_over(s);
	pthread_mutex_unlock(&s->lock);
	return over;
}

static void wait_until(struct sender *s, uint64_t at)
{
	struct timespec limit = { .tv_sec = (time_t)(at / HA_NS_PER_S),
				  .tv_nsec = (long)(at % HA_NS_PER_S) };

	pthread_cond_timedwait(&s->wake, &s->lock, &limit);
}

/* Waits for it. False: the sender ends. At the end nobody waits any more: what is there is tried
 * once. */
static bool await_request(struct sender *s, struct request *request)
{
	for (;;) {
		if (is_over(s))
			return false;
		if (!s->deadline && ha_clock_now(&ha_clock_live) < s->again_at) {
			wait_until(s, s->again_at);
			continue;
		}
		if (s->source->next(s, request))
			return true;
		if (s->deadline)
			return false;
		pthread_cond_wait(&s->wake, &s->lock);
	}
}

/* Half of it at random, so that a thousand hosts do not come in the same moment. */
static void set_pause(struct sender *s, const struct answer *answer)
{
	uint64_t pause = FIRST_PAUSE_NS << (s->tries < DOUBLINGS ? s->tries : DOUBLINGS);
	uint64_t wanted = answer->wait_s < WAIT_MAX_S ? answer->wait_s : WAIT_MAX_S;

	if (pause > LONGEST_PAUSE_NS)
		pause = LONGEST_PAUSE_NS;
	pause = pause / 2 + ha_random_u64() % (pause / 2 + 1);
	if (pause < wanted * HA_NS_PER_S)
		pause = wanted * HA_NS_PER_S;
	s->again_at = ha_clock_now(&ha_clock_live) + pause;
	s->tries++;
}

static void take_answer(struct sender *s, struct answer *answer)
{
	enum sender_verdict verdict = s->source->judge(s, answer);

	/* Two in a row would be a receiver that contradicts itself. */
	if (verdict == SENDER_NEXT && s->tries)
		verdict = SENDER_AGAIN;
	if (verdict != SENDER_TAKEN)
		s->counts.failed++;
	switch (verdict) {
	case SENDER_TAKEN:
		s->tries = 0;
		report_recovery(s);
		break;
	case SENDER_NEXT:
		s->tries++;
		break;
	case SENDER_AGAIN:
		set_pause(s, answer);
		if (s->deadline)
			s->deadline = 1; /* long ago */
		report_failure(s, answer, verdict);
		break;
	case SENDER_REFUSED:
		s->tries = 0;
		report_failure(s, answer, verdict);
		break;
	}
}

static void *send_all(void *user)
{
	struct sender *s = user;
	struct request request;
	struct answer answer;

	pthread_mutex_lock(&s->lock);
	while (await_request(s, &request)) {
		pthread_mutex_unlock(&s->lock);
		client_send(&s->client, &request, &answer);
		free(request.body);
		pthread_mutex_lock(&s->lock);
		take_answer(s, &answer);
	}
	if (s->counts.waiting)
		fprintf(stderr, "hawser-exporter: %s: ends with %llu events not sent\n", s->name,
			(unsigned long long)s->counts.waiting);
	sender_settle(s, s->counts.waiting, false);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* Signals are the loop's: one that interrupted a thread would not end the loop's wait. */
static int start_thread(struct sender *s)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&s->thread, NULL, send_all, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int sender_open(struct sender *s, const struct client_options *options)
{
	pthread_condattr_t clock;
	int err;

	if (!client_open(&s->client, options, is_stopped, s))
		return -ENOMEM;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &clock);
	pthread_condattr_destroy(&clock);
	err = start_thread(s);
	if (err)
		client_close(&s->client);
	return err;
}

void sender_end(struct sender *s, uint64_t grace_ns)
{
	pthread_mutex_lock(&s->lock);
	s->deadline = ha_clock_now(&ha_clock_live) + grace_ns;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

void sender_close(struct sender *s)
{
	pthread_join(s->thread, NULL);
	client_close(&s->client);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
}
