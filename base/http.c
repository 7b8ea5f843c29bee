/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/http.h"

#include "base/sockaddr.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define CONNECTIONS 16
#define SECONDS 5   /* that a client may be silent */
#define MEMORY 8192 /* bytes for a request's head */
#define TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

static enum MHD_Result send_reply(struct MHD_Connection *c, unsigned status, char *text, size_t len,
				  const char *type)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result sent = MHD_NO;

	if (!r) {
		free(text);
		return MHD_NO;
	}
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES)
		sent = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return sent;
}

static enum MHD_Result refuse_request(struct MHD_Connection *c, unsigned status, const char *why)
{
	char *text = strdup(why);

	return text ? send_reply(c, status, text, strlen(text), "text/plain") : MHD_NO;
}

static enum MHD_Result send_page(const struct ha_http *h, struct MHD_Connection *c,
				 void (*print)(const void *user, FILE *out), const char *type)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return MHD_NO;
	print(h->user, out);
	if (fclose(out)) {
		free(text);
		return MHD_NO;
	}
	return send_reply(c, MHD_HTTP_OK, text, len, type);
}

static enum MHD_Result find_page(const struct ha_http *h, struct MHD_Connection *c, const char *url)
{
	if (!strcmp(url, "/metrics"))
		return send_page(h, c, h->print, TYPE);
	for (const struct ha_http_page *p = h->pages; p && p->path; p++)
		if (!strcmp(url, p->path))
			return send_page(h, c, p->print, p->type);
	return refuse_request(c, MHD_HTTP_NOT_FOUND, "the metrics are at /metrics\n");
}

static enum MHD_Result answer_request(void *user, struct MHD_Connection *c, const char *url,
				      const char *method, const char *version, const char *upload,
				      size_t *upload_size, void **state)
{
	static int seen;

	/* Called first with the head alone, then again; a body is of no interest. */
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	if (*upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, "GET") && strcmp(method, "HEAD"))
		return refuse_request(c, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
	return find_page(user, c, url);
}

static void server_ready(struct ha_watch *watch, uint32_t events)
{
	struct ha_http *h = (struct ha_http *)watch; /* its first member */

	MHD_run(h->server);
}

void ha_http_tick(struct ha_http *h)
{
	if (h->server)
		MHD_run(h->server);
}

const char *ha_http_open(struct ha_http *h, struct ha_loop *loop,
			 void (*print)(const void *user, FILE *out), const void *user,
			 const char *at)
{
	union ha_sockaddr to;
	const union MHD_DaemonInfo *info;
	unsigned flags = MHD_USE_EPOLL;

	*h = (struct ha_http) { .loop = loop, .print = print, .user = user };
	if (!strcmp(at, "none"))
		return NULL;
	if (ha_sockaddr_parse(at, &to))
		return "it is neither ADDRESS:PORT nor none";
	if (to.sa.sa_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	h->server = MHD_start_daemon(flags, 0, NULL, NULL, answer_request, h, MHD_OPTION_SOCK_ADDR,
				     &to, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
				     MHD_OPTION_CONNECTION_TIMEOUT, SECONDS,
				     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY,
				     MHD_OPTION_END);
	if (!h->server)
		return "nobody can listen there; is the port taken?";
	info = MHD_get_daemon_info(h->server, MHD_DAEMON_INFO_BIND_PORT);
	h->port = info ? info->port : 0;
	info = MHD_get_daemon_info(h->server, MHD_DAEMON_INFO_EPOLL_FD);
	h->watch = (struct ha_watch) { info ? info->epoll_fd : -1, server_ready };
	if (h->watch.fd >= 0 && !ha_loop_add(loop, &h->watch, EPOLLIN))
		return NULL;
	ha_http_close(h);
	return "its descriptor cannot be waited for";
}

void ha_http_close(struct ha_http *h)
{
	if (!h->server)
		return;
	ha_loop_remove(h->loop, &h->watch);
	MHD_stop_daemon(h->server);
	h->server = NULL;
}
