/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sender.h - a thread that sends one request after another to one receiver
 *
 * The exporter's loop only puts events where the thread finds them: a receiver that is slow or
 * gone delays nobody. A request that fails is sent again, after 1 s, 2 s, 4 s ... 60 s; what waits
 * meanwhile, and how much of it, is its source's business (webhook.c, kubernetes.c).
 */
#ifndef HAWSER_EXPORTER_SENDER_H
#define HAWSER_EXPORTER_SENDER_H

#include <pthread.h>
#include <stdint.h>

#include "tools/exporter/request.h"

enum sender_verdict {
	SENDER_TAKEN,   /* the receiver has it */
	SENDER_AGAIN,   /* send it again, later */
	SENDER_NEXT,    /* ask for the next request at once */
	SENDER_REFUSED, /* the receiver will never take it */
};

/* In events; each is sent, dropped or waiting. */
struct sender_counts {
	uint64_t sent, dropped, waiting;
	uint64_t failed; /* requests */
};

struct sender;

/* Called with the sender's lock. */
struct sender_source {
	/* The next request; false: there is none. */
	bool (*next)(struct sender *s, struct request *request);
	/* What the answer to it means; counts what is sent or dropped for that. May make the text
	 * what an operator should read. */
	enum sender_verdict (*judge)(struct sender *s, struct answer *answer);
};

/* First member of its source. */
struct sender {
	const struct sender_source *source;
	char name[RECEIVER_NAME_MAX + 16]; /* "webhook https://host:port" */
	const char *advice;                /* for the line about a failure; NULL: none */
	struct client client;
	pthread_t thread;
	pthread_mutex_t lock; /* of all that follows, and of the source's events */
	pthread_cond_t wake;
	struct sender_counts counts;
	unsigned tries;    /* in a row that failed */
	uint64_t again_at; /* CLOCK_MONOTONIC, ns: no request before */
	uint64_t deadline; /* of the end; 0: it does not end */
	bool refused;      /* the last line said that the receiver takes nothing */
};

/* 0 or a negative errno. The name, the source and the advice are there already. */
int sender_open(struct sender *s, const struct client_options *options);
/* From now on what waits is tried once more, for grace_ns at most; what is left then counts as
 * dropped. */
void sender_end(struct sender *s, uint64_t grace_ns);
/* Waits for that; after sender_end(). */
void sender_close(struct sender *s);

/* There is one event more. With the lock. */
void sender_accept(struct sender *s);
/* n events are not waiting any more. With the lock. */
void sender_settle(struct sender *s, uint64_t n, bool sent);
/* What an HTTP status means in general: 0, 408, 429 and 5xx are for later. */
enum sender_verdict sender_judge(long status);

struct sender_counts sender_counts(struct sender *s);

#endif
