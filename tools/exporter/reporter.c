/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/reporter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define GRACE_NS (5 * HA_NS_PER_S)

/* A pod has a host name of its own. */
static void name_host(char host[HOST_NAME_MAX + 1])
{
	const char *node = getenv("NODE_NAME");

	if (node && *node)
		snprintf(host, HOST_NAME_MAX + 1, "%s", node);
	else if (gethostname(host, HOST_NAME_MAX + 1))
		snprintf(host, HOST_NAME_MAX + 1, "unknown");
	host[HOST_NAME_MAX] = 0;
}

static bool set_fault(struct reporter_fault *fault, const char *what, const char *why, int status)
{
	*fault = (struct reporter_fault) { what, why, status };
	return false;
}

/* NULL: there is none to read. */
static bool may_read(const char *path)
{
	return !path || !access(path, R_OK);
}

/* Two on one host have different paths, which may be secrets: the second is "https://host:443 #2".
 */
static void make_unique(const struct reporter *r, char name[RECEIVER_NAME_MAX])
{
	size_t length = strlen(name);
	unsigned same = 1;

	for (unsigned i = 0; i < r->webhooks; i++) {
		const char *other = r->webhook[i]->sender.name + WEBHOOK_NAME;

		same += !strncmp(other, name, length) && (!other[length] || other[length] == ' ');
	}
	if (same > 1)
		snprintf(name + length, RECEIVER_NAME_MAX - length, " #%u", same);
}

static bool open_webhooks(struct reporter *r, const struct reporter_options *o,
			  const struct libcurl *curl, struct reporter_fault *fault)
{
	unsigned timeout_ms = (unsigned)(o->timeout_ns / HA_NS_PER_MS);

	for (unsigned i = 0; i < o->webhooks; i++) {
		char name[RECEIVER_NAME_MAX];
		const char *wrong = request_check_url(curl, o->webhook[i].url, name);
		struct webhook *w;

		if (wrong)
			return set_fault(fault, "--webhook", wrong, 2);
		if (!may_read(o->webhook[i].headers) || !may_read(o->webhook[i].ca))
			return set_fault(fault, "the file of --webhook-headers or --webhook-ca",
					 strerror(errno), 1);
		make_unique(r, name);
		w = webhook_open(&o->webhook[i], name, curl, timeout_ms, r->host);
		if (!w)
			return set_fault(fault, "--webhook", "its thread cannot be started", 1);
		r->webhook[r->webhooks++] = w;
	}
	return true;
}

bool reporter_open(struct reporter *r, const struct reporter_options *o,
		   struct reporter_fault *fault)
{
	unsigned timeout_ms = (unsigned)(o->timeout_ns / HA_NS_PER_MS);
	const struct libcurl *curl;
	const char *why;

	*r = (struct reporter) { .journal = { .fd = -1 } };
	name_host(r->host);
	if (strcmp(o->journal, "none"))
		journal_open(&r->journal, o->journal);
	if (!o->webhooks && !o->kubernetes)
		return true;
	curl = libcurl_open(&why);
	if (!curl)
		return set_fault(fault, o->webhooks ? "--webhook" : "--kubernetes", why, 1);
	if (!open_webhooks(r, o, curl, fault))
		return false;
	if (!o->kubernetes)
		return true;
	r->kubernetes = kubernetes_open(curl, o->account, timeout_ms, &why);
	return r->kubernetes || set_fault(fault, "--kubernetes", why, 1);
}

void reporter_write(void *reporter, const struct watcher_event *event)
{
	struct reporter *r = reporter;

	journal_write(&r->journal, event);
	for (unsigned i = 0; i < r->webhooks; i++)
		webhook_write(r->webhook[i], event);
	if (r->kubernetes)
		kubernetes_write(r->kubernetes, event);
}

void reporter_close(struct reporter *r)
{
	for (unsigned i = 0; i < r->webhooks; i++)
		sender_end(&r->webhook[i]->sender, GRACE_NS);
	if (r->kubernetes)
		sender_end(&r->kubernetes->sender, GRACE_NS);
	while (r->webhooks)
		webhook_close(r->webhook[--r->webhooks]);
	if (r->kubernetes)
		kubernetes_close(r->kubernetes);
	r->kubernetes = NULL;
	journal_close(&r->journal);
}
