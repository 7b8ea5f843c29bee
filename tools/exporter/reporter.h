/* SPDX-License-Identifier: BSD-3-Clause */
/* reporter.h - where the exporter reports events: the journal, webhooks, Kubernetes */
#ifndef HAWSER_EXPORTER_REPORTER_H
#define HAWSER_EXPORTER_REPORTER_H

#include "tools/exporter/journal.h"
#include "tools/exporter/kubernetes.h"
#include "tools/exporter/webhook.h"

#define WEBHOOKS_MAX 8

struct reporter_options {
	const char *journal; /* its socket; "none" */
	struct webhook_options webhook[WEBHOOKS_MAX];
	unsigned webhooks;
	bool kubernetes;
	const char *account;
	uint64_t timeout_ns; /* of a request */
};

struct reporter {
	struct journal journal;
	struct webhook *webhook[WEBHOOKS_MAX];
	unsigned webhooks;
	struct kubernetes *kubernetes; /* NULL: none */
	char host[HOST_NAME_MAX + 1];  /* of the JSON */
};

/* Why it cannot be opened. */
struct reporter_fault {
	const char *what, *why; /* "--webhook", "..." */
	int status;             /* to exit with: 1 it cannot be done here, 2 it was asked wrongly */
};

/* False: see the fault; to be closed all the same. */
bool reporter_open(struct reporter *r, const struct reporter_options *options,
		   struct reporter_fault *fault);
/* For watcher.report; never waits. */
void reporter_write(void *reporter, const struct watcher_event *event);
/* Waits some seconds at most for what is on its way. */
void reporter_close(struct reporter *r);

#endif
