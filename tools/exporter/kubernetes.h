/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kubernetes.h - events as Event objects of the node, for `kubectl describe node`
 *
 * Events that are alike (same reason, cause, device and job) and less than ten minutes apart are
 * one object, whose count and last time go up. Those that happen while a request is on its way
 * go with the next one: what waits is bounded by the number of objects.
 */
#ifndef HAWSER_EXPORTER_KUBERNETES_H
#define HAWSER_EXPORTER_KUBERNETES_H

#include "tools/exporter/sender.h"
#include "tools/exporter/watcher.h"

#define KUBERNETES_OBJECTS 128
#define KUBERNETES_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define KUBERNETES_NODE_MAX 254
#define KUBERNETES_NAME_MAX 300
#define KUBERNETES_URL_MAX 512

struct kubernetes_object {
	char name[KUBERNETES_NAME_MAX];
	const char *reason; /* a constant; NULL: a free record */
	struct watcher_event last;
	uint64_t first, latest; /* CLOCK_REALTIME, ns */
	uint64_t count;         /* events */
	uint64_t written;       /* of them the API server has; the others wait */
	bool created;           /* by what we know */
};

struct kubernetes {
	struct sender sender;
	char node[KUBERNETES_NODE_MAX];
	char url[KUBERNETES_URL_MAX]; /* of the events */
	char ca[PATH_MAX], token[PATH_MAX];
	struct kubernetes_object object[KUBERNETES_OBJECTS];
	struct kubernetes_object *sending; /* the request on its way is of this one; NULL: none */
	uint64_t sending_count;
	uint64_t named; /* the number of the last name */
};

/* By the environment of a pod: KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, NODE_NAME.
 * account: the directory of ca.crt and token. NULL: *why says what is missing. */
struct kubernetes *kubernetes_open(const struct libcurl *curl, const char *account,
				   unsigned timeout_ms, const char **why);
/* Never waits. */
void kubernetes_write(struct kubernetes *k, const struct watcher_event *event);
/* After sender_end(). */
void kubernetes_close(struct kubernetes *k);

#endif
