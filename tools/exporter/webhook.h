/* SPDX-License-Identifier: BSD-3-Clause */
/* webhook.h - each event that an operator acts on as JSON to a URL */
#ifndef HAWSER_EXPORTER_WEBHOOK_H
#define HAWSER_EXPORTER_WEBHOOK_H

#include "tools/exporter/sender.h"
#include "tools/exporter/watcher.h"

#define WEBHOOK_WAITING 512
#define WEBHOOK_NAME (sizeof("webhook ") - 1) /* where in the sender's name its URL begins */

struct webhook_options {
	const char *url, *headers, *ca; /* files; NULL: none, the system's */
};

struct webhook {
	struct sender sender;
	const char *url, *host;
	/* Waiting, from `first` on, as a ring. */
	struct watcher_event waiting[WEBHOOK_WAITING];
	unsigned first, n;
	struct watcher_event current; /* that the sender tries */
	bool trying;                  /* it is set */
	unsigned errors;              /* answers 5xx to it */
};

/* receiver: the URL's name (request_check_url). host: for the field of that name. Options and host
 * outlive it. NULL: no memory, or no thread. */
struct webhook *webhook_open(const struct webhook_options *options, const char *receiver,
			     const struct libcurl *curl, unsigned timeout_ms, const char *host);
/* Never waits: the oldest event makes room. */
void webhook_write(struct webhook *w, const struct watcher_event *event);
/* After sender_end(). */
void webhook_close(struct webhook *w);

#endif
