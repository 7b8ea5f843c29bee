/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"

#define CONNECT_MS 5000
#define LINE_MAX_BYTES 8192 /* of a file with headers or a token */
#define AGENT_MAX 96
#define WAIT_MAX_S 86400 /* what asks for more is no Retry-After */

/* ---- the URL ---- */

/* A part that the URL has; to be freed by curl->free. NULL: it has none. */
static char *part_of(const struct libcurl *curl, CURLU *url, CURLUPart part, unsigned flags)
{
	char *text = NULL;

	return curl->url_get(url, part, &text, flags) ? NULL : text;
}

static const char *name_receiver(const struct libcurl *curl, CURLU *url,
				 char name[RECEIVER_NAME_MAX])
{
	char *scheme = part_of(curl, url, CURLUPART_SCHEME, 0);
	char *host = part_of(curl, url, CURLUPART_HOST, 0);
	char *port = part_of(curl, url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
	char *user = part_of(curl, url, CURLUPART_USER, 0);
	const char *wrong = NULL;

	if (!scheme || !host || !port || (strcmp(scheme, "http") && strcmp(scheme, "https")))
		wrong = "it is no http or https URL";
	else if (user)
		wrong = "a user or password in it is readable by every process of the host; put an "
			"Authorization line into the file of --webhook-headers";
	else
		snprintf(name, RECEIVER_NAME_MAX, "%s://%s:%s", scheme, host, port);
	curl->free(scheme);
	curl->free(host);
	curl->free(port);
	curl->free(user);
	return wrong;
}

const char *request_check_url(const struct libcurl *curl, const char *text,
			      char name[RECEIVER_NAME_MAX])
{
	CURLU *url = curl->url();
	const char *wrong = "it is no http or https URL";

	if (strlen(text) < REQUEST_URL_MAX && url && !curl->url_set(url, CURLUPART_URL, text, 0))
		wrong = name_receiver(curl, url, name);
	curl->url_cleanup(url);
	return wrong;
}

/* ---- headers ---- */

/* False: no memory; the list is freed. */
static bool add_header(const struct libcurl *curl, struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl->slist_append(*list, line);

	if (!longer)
		curl->slist_free_all(*list);
	*list = longer;
	return longer;
}

/* Without what would end a header, and begin another. */
static void cut_line_end(char *line)
{
	line[strcspn(line, "\r\n")] = 0;
}

/* "NAME: value" per line; empty lines and those with # are none. What is wrong is in why. */
static bool add_header_file(const struct client *c, struct curl_slist **list, char *why)
{
	const char *path = c->options.headers;
	FILE *in = fopen(path, "re");
	char line[LINE_MAX_BYTES];
	bool ok = in;

	if (!in)
		snprintf(why, ANSWER_TEXT_MAX, "%s: %s", path, strerror(errno));
	for (unsigned n = 1; ok && fgets(line, sizeof(line), in); n++) {
		cut_line_end(line);
		if (!*line || *line == '#')
			continue;
		ok = strchr(line, ':') && *line != ':';
		if (!ok)
			snprintf(why, ANSWER_TEXT_MAX, "%s: line %u is no 'Name: value'", path, n);
		else
			ok = add_header(c->options.curl, list, line);
	}
	if (in)
		fclose(in);
	return ok;
}

static bool add_token(const struct client *c, struct curl_slist **list, char *why)
{
	static const char before[] = "Authorization: Bearer ";
	const char *path = c->options.token;
	char line[sizeof(before) + LINE_MAX_BYTES];
	FILE *in = fopen(path, "re");
	char *token = line + strlen(before);
	bool ok;

	memcpy(line, before, sizeof(before));
	ok = in && fgets(token, LINE_MAX_BYTES, in);
	if (!ok)
		snprintf(why, ANSWER_TEXT_MAX, "%s: %s", path,
			 in ? "it is empty" : strerror(errno));
	if (in)
		fclose(in);
	cut_line_end(line);
	return ok && add_header(c->options.curl, list, line);
}

/* NULL: what is wrong is in why. */
static struct curl_slist *make_headers(const struct client *c, const char *type, char *why)
{
	struct curl_slist *list = NULL;
	char line[128];
	bool ok;

	snprintf(why, ANSWER_TEXT_MAX, "no memory");
	snprintf(line, sizeof(line), "Content-Type: %s", type);
	ok = add_header(c->options.curl, &list, line) &&
	     add_header(c->options.curl, &list, "Accept: application/json") &&
	     add_header(c->options.curl, &list, "Expect:") && /* no question before the body */
	     (!c->options.headers || add_header_file(c, &list, why)) &&
	     (!c->options.token || add_token(c, &list, why));
	if (ok)
		return list;
	c->options.curl->slist_free_all(list);
	return NULL;
}

/* ---- the request ---- */

/* Of a long answer the begin is kept, and the rest read and forgotten. */
static size_t keep_text(char *data, size_t size, size_t n, void *user)
{
	struct answer *answer = user;
	size_t at = strlen(answer->text), room = sizeof(answer->text) - 1 - at;

	snprintf(answer->text + at, room + 1, "%.*s", (int)(n < room ? n : room), data);
	return size * n;
}

static int look_at_stop(void *user, curl_off_t down, curl_off_t down_now, curl_off_t up,
			curl_off_t up_now)
{
	const struct client *c = user;

	return c->stopped(c->user);
}

bool client_open(struct client *c, const struct client_options *options,
		 bool (*stopped)(void *user), void *user)
{
	const struct libcurl *curl = options->curl;
	long connect_ms = options->timeout_ms < CONNECT_MS ? options->timeout_ms : CONNECT_MS;
	char agent[AGENT_MAX];

	*c = (struct client) { .options = *options, .stopped = stopped, .user = user };
	c->easy = curl->easy_init();
	if (!c->easy)
		return false;
	snprintf(agent, sizeof(agent), "hawser-exporter/%s", ha_version);
	curl->easy_setopt(c->easy, CURLOPT_USERAGENT, agent);
	curl->easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L);
	curl->easy_setopt(c->easy, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	curl->easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
	curl->easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, keep_text);
	curl->easy_setopt(c->easy, CURLOPT_NOPROGRESS, 0L);
	curl->easy_setopt(c->easy, CURLOPT_XFERINFOFUNCTION, look_at_stop);
	curl->easy_setopt(c->easy, CURLOPT_XFERINFODATA, c);
	curl->easy_setopt(c->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (options->ca)
		curl->easy_setopt(c->easy, CURLOPT_CAINFO, options->ca);
	if (options->direct)
		curl->easy_setopt(c->easy, CURLOPT_PROXY, "");
#if LIBCURL_VERSION_NUM >= 0x075700
	/* A name server that is silent holds nothing up at the end. */
	curl->easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return true;
}

void client_close(struct client *c)
{
	if (c->easy)
		c->options.curl->easy_cleanup(c->easy);
	c->easy = NULL;
}

void client_send(struct client *c, const struct request *request, struct answer *answer)
{
	const struct libcurl *curl = c->options.curl;
	struct curl_slist *headers;
	char why[CURL_ERROR_SIZE] = "";
	curl_off_t wait = 0;
	CURLcode code;

	*answer = (struct answer) { 0 };
	headers = make_headers(c, request->type, answer->text);
	if (!headers)
		return;
	answer->text[0] = 0;
	curl->easy_setopt(c->easy, CURLOPT_ERRORBUFFER, why);
	curl->easy_setopt(c->easy, CURLOPT_WRITEDATA, answer);
	curl->easy_setopt(c->easy, CURLOPT_URL, request->url);
	curl->easy_setopt(c->easy, CURLOPT_HTTPHEADER, headers);
	curl->easy_setopt(c->easy, CURLOPT_POSTFIELDS, request->body);
	curl->easy_setopt(c->easy, CURLOPT_CUSTOMREQUEST, request->method);
	code = curl->easy_perform(c->easy);
	curl->easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &answer->status);
	curl->easy_getinfo(c->easy, CURLINFO_RETRY_AFTER, &wait);
	answer->wait_s = wait > 0 && wait < WAIT_MAX_S ? (unsigned)wait : 0;
	if (code && answer->status / 100 != 2) { /* 2xx says all, also when its body is cut off */
		answer->status = 0;
		snprintf(answer->text, sizeof(answer->text), "%s",
			 *why ? why : curl->easy_strerror(code));
	}
	curl->easy_setopt(c->easy, CURLOPT_ERRORBUFFER, NULL);
	curl->easy_setopt(c->easy, CURLOPT_HTTPHEADER, NULL);
	curl->slist_free_all(headers);
}
