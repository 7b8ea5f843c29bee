/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flood - for test_webhook.py and test_kubernetes.py: more events at once than may wait
 *
 * flood webhook URL N: N events, numbered from 0, failovers and slow paths in turn, and beside each
 * of them one that nobody acts on. flood kubernetes DIR N JOBS: N failovers of JOBS jobs in turn;
 * the pod's environment says where. Begins when a first one, which the receiver has to hold, is on
 * its way and a line is on stdin; says "written" then, and counts at the end.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tools/exporter/kubernetes.h"
#include "tools/exporter/webhook.h"

#define TIMEOUT_MS 600000 /* that only a hang reaches */
#define GRACE_NS (5 * HA_NS_PER_S)

static struct watcher_event make_event(unsigned number, unsigned job)
{
	struct watcher_event event = { .pid = 4711 };

	event.event.kind = HA_EVENT_FAILED_OVER;
	event.event.cause = HA_CAUSE_PORT_DOWN;
	event.event.number = number;
	event.event.bytes = UINT64_MAX; /* more than a signed number holds */
	event.event.wall = (uint64_t)time(NULL) * HA_NS_PER_S + number;
	strcpy(event.event.device, "mlx5_0:1");
	strcpy(event.event.connection, "mlx5_0:1 -> \"host\"[1] mlx5_0:1");
	snprintf(event.job, sizeof(event.job), "job%u", job);
	return event;
}

static void await_line(void)
{
	char line[16];

	if (!fgets(line, sizeof(line), stdin))
		exit(1);
}

/* Until nothing waits any more. */
static void await_end(struct sender *s)
{
	struct timespec pause = { .tv_nsec = 10 * 1000 * 1000 };
	struct sender_counts counts = sender_counts(s);

	printf("written, %" PRIu64 " waiting, %" PRIu64 " dropped\n", counts.waiting,
	       counts.dropped);
	fflush(stdout);
	while (sender_counts(s).waiting)
		nanosleep(&pause, NULL);
	counts = sender_counts(s);
	printf("%" PRIu64 " sent, %" PRIu64 " dropped, %" PRIu64 " failed\n", counts.sent,
	       counts.dropped, counts.failed);
	sender_end(s, GRACE_NS);
}

static int flood_webhook(const struct libcurl *curl, const char *url, unsigned n)
{
	const struct webhook_options options = { .url = url };
	char name[RECEIVER_NAME_MAX];
	struct webhook *w;

	if (request_check_url(curl, url, name))
		return 1;
	w = webhook_open(&options, name, curl, TIMEOUT_MS, "host");
	if (!w)
		return 1;
	for (unsigned i = 0; i < n; i++) {
		struct watcher_event event = make_event(i, 0), other = event;

		if (i % 2)
			event.event.kind = HA_EVENT_SLOW;
		other.event.kind = HA_EVENT_CONNECTED;
		webhook_write(w, &event);
		webhook_write(w, &other);
		if (!i)
			await_line();
	}
	await_end(&w->sender);
	webhook_close(w);
	return 0;
}

static int flood_kubernetes(const struct libcurl *curl, const char *account, unsigned n,
			    unsigned jobs)
{
	const char *why;
	struct kubernetes *k = kubernetes_open(curl, account, TIMEOUT_MS, &why);

	if (!k) {
		fprintf(stderr, "flood: %s\n", why);
		return 1;
	}
	for (unsigned i = 0; i < n; i++) {
		struct watcher_event event = make_event(i, i % jobs);

		kubernetes_write(k, &event);
		if (!i)
			await_line();
	}
	await_end(&k->sender);
	kubernetes_close(k);
	return 0;
}

int main(int argc, char **argv)
{
	const char *why;
	const struct libcurl *curl = libcurl_open(&why);

	if (!curl || argc < 4) {
		fprintf(stderr, "flood: %s\n", curl ? "too few words" : why);
		return 1;
	}
	if (!strcmp(argv[1], "webhook"))
		return flood_webhook(curl, argv[2], (unsigned)atoi(argv[3]));
	return argc < 5 ? 1
			: flood_kubernetes(curl, argv[2], (unsigned)atoi(argv[3]),
					   (unsigned)atoi(argv[4]));
}
