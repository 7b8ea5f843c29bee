/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * http.h - GET /metrics, and other pages where there are some, by libmicrohttpd, in its owner's
 * loop: it has no thread
 */
#ifndef HA_AGENT_HTTP_H
#define HA_AGENT_HTTP_H

#include "base/loop.h"

#include <stdio.h>

struct MHD_Daemon;

/* A page besides /metrics. */
struct ha_http_page {
	const char *path, *type; /* "/", "text/html; charset=utf-8"; path NULL: the last of them */
	void (*print)(const void *user, FILE *out);
};

struct ha_http {
	struct ha_watch watch; /* libmicrohttpd's own epoll descriptor */
	struct ha_loop *loop;
	struct MHD_Daemon *server; /* NULL: none */
	unsigned port;
	void (*print)(const void *user, FILE *out); /* what there is to say, as OpenMetrics */
	const void *user;
	const struct ha_http_page *pages; /* the owner's, after ha_http_open; NULL: none */
};

/* at: "ADDRESS:PORT" (port 0 = any), "[ADDRESS]:PORT", or "none". NULL, or what is wrong with
 * it. */
const char *ha_http_open(struct ha_http *h, struct ha_loop *loop,
			 void (*print)(const void *user, FILE *out), const void *user,
			 const char *at);
void ha_http_close(struct ha_http *h);
/* Time-outs. */
void ha_http_tick(struct ha_http *h);

#endif
