/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/webhook.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/exporter/notice.h"

/* Answers "internal error" to one event. A receiver that is away is asked for ever; one that this
 * event breaks shall not keep the others from it. */
#define ERRORS_MAX 16

static void take_oldest(struct webhook *w)
{
	w->current = w->waiting[w->first];
	w->first = (w->first + 1) % WEBHOOK_WAITING;
	w->n--;
	w->trying = true;
	w->errors = 0;
}

static bool next_event(struct sender *s, struct request *request)
{
	struct webhook *w = (struct webhook *)s;

	if (!w->trying && !w->n)
		return false;
	if (!w->trying)
		take_oldest(w);
	request->method = "POST";
	request->type = "application/json";
	snprintf(request->url, sizeof(request->url), "%s", w->url);
	request->body = notice_json(&w->current, w->host);
	return request->body;
}

static bool is_receiver_away(long status)
{
	return !status || status == 408 || status == 429 || (status >= 502 && status <= 504);
}

static enum sender_verdict judge_answer(struct sender *s, struct answer *answer)
{
	struct webhook *w = (struct webhook *)s;
	enum sender_verdict verdict = sender_judge(answer->status);

	if (verdict == SENDER_AGAIN && !is_receiver_away(answer->status) &&
	    ++w->errors == ERRORS_MAX)
		verdict = SENDER_REFUSED;
	if (verdict == SENDER_AGAIN)
		return verdict;
	w->trying = false;
	sender_settle(s, 1, verdict == SENDER_TAKEN);
	return verdict;
}

void webhook_write(struct webhook *w, const struct watcher_event *event)
{
	struct sender *s = &w->sender;

	if (notice_priority(&event->event) == NOTICE_NONE)
		return;
	pthread_mutex_lock(&s->lock);
	if (w->n == WEBHOOK_WAITING) {
		w->first = (w->first + 1) % WEBHOOK_WAITING;
		w->n--;
		sender_settle(s, 1, false);
	}
	w->waiting[(w->first + w->n++) % WEBHOOK_WAITING] = *event;
	sender_accept(s);
	pthread_mutex_unlock(&s->lock);
}

struct webhook *webhook_open(const struct webhook_options *options, const char *receiver,
			     const struct libcurl *curl, unsigned timeout_ms, const char *host)
{
	static const struct sender_source source = { next_event, judge_answer };
	const struct client_options client = { .curl = curl,
					       .ca = options->ca,
					       .headers = options->headers,
					       .timeout_ms = timeout_ms };
	struct webhook *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->url = options->url;
	w->host = host;
	w->sender.source = &source;
	snprintf(w->sender.name, sizeof(w->sender.name), "webhook %s", receiver);
	if (!sender_open(&w->sender, &client))
		return w;
	free(w);
	return NULL;
}

void webhook_close(struct webhook *w)
{
	sender_close(&w->sender);
	free(w);
}
