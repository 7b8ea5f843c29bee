/* SPDX-License-Identifier: BSD-3-Clause */
/* request.h - one HTTP request and its answer, by libcurl; waits for it, so for a thread of its
 * own */
#ifndef HAWSER_EXPORTER_REQUEST_H
#define HAWSER_EXPORTER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/exporter/libcurl.h"

#define REQUEST_URL_MAX 2048
#define ANSWER_TEXT_MAX 2048
#define RECEIVER_NAME_MAX 320

struct request {
	const char *method, *type; /* "POST", "application/json" */
	char url[REQUEST_URL_MAX];
	char *body; /* malloc'ed; its taker frees it */
};

struct answer {
	long status;     /* HTTP's; 0: there was no answer */
	unsigned wait_s; /* before the next request, as the receiver wants it; 0: it does not say */
	char text[ANSWER_TEXT_MAX]; /* the begin of the answer, or why there was none */
};

struct client_options {
	const struct libcurl *curl;
	/* Files that are read anew for each request: certificates of authorities, header lines, a
	 * bearer token. NULL: the system's, none, none. */
	const char *ca, *headers, *token;
	bool direct; /* without a proxy, whatever the environment says */
	unsigned timeout_ms;
};

struct client {
	struct client_options options;
	CURL *easy;
	/* True: give up the request that is on its way. */
	bool (*stopped)(void *user);
	void *user;
};

/* False: no memory. */
bool client_open(struct client *c, const struct client_options *options,
		 bool (*stopped)(void *user), void *user);
void client_send(struct client *c, const struct request *request, struct answer *answer);
void client_close(struct client *c);

/* NULL, or what is wrong with the URL. name: of it what is no secret, "https://host:port". */
const char *request_check_url(const struct libcurl *curl, const char *url,
			      char name[RECEIVER_NAME_MAX]);

#endif
