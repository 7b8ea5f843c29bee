/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/journal.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/exporter/notice.h"

#define ENTRY_MAX 2048

bool journal_open(struct journal *j, const char *path)
{
	*j = (struct journal) { .fd = -1, .path = path };
	if (ha_sockaddr_unix(path, &j->to) || access(path, F_OK))
		return false;
	j->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return j->fd >= 0;
}

void journal_close(struct journal *j)
{
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
}

/* False: try later. */
static bool send_entry(const struct journal *j, const struct watcher_event *event)
{
	const struct ha_status_event *e = &event->event;
	char message[NOTICE_TEXT_MAX], entry[ENTRY_MAX];
	int n;

	notice_print(e, message);
	n = snprintf(entry, sizeof(entry),
		     "MESSAGE=%s\nPRIORITY=%d\n"
		     "SYSLOG_IDENTIFIER=hawser\nHAWSER_EVENT=%s\nHAWSER_CAUSE=%s\n"
		     "HAWSER_DEVICE=%s\nHAWSER_PEER_DEVICE=%s\nHAWSER_CONNECTION=%s\n"
		     "HAWSER_STALL_NS=%llu\nHAWSER_REPLAYED_BYTES=%llu\nHAWSER_JOB=%s\n"
		     "OBJECT_PID=%u\n",
		     message, notice_priority(e), ha_event_kind_text(e->kind),
		     ha_event_cause_text(e->cause), e->device, e->peer_device, e->connection,
		     (unsigned long long)e->stall, (unsigned long long)e->bytes, event->job,
		     event->pid);
	if (n >= (int)sizeof(entry))
		n = sizeof(entry) - 1;
	return sendto(j->fd, entry, (size_t)n, MSG_NOSIGNAL, (const struct sockaddr *)&j->to,
		      sizeof(j->to)) == n;
}

void journal_flush(struct journal *j)
{
	while (j->n && send_entry(j, &j->waiting[j->first])) {
		j->first = (j->first + 1) % JOURNAL_WAITING;
		j->n--;
	}
}

/* A socket of datagrams holds ten or so, and a cable that is pulled makes a hundred events. */
void journal_write(struct journal *j, const struct watcher_event *event)
{
	if (j->fd < 0 || notice_priority(&event->event) == NOTICE_NONE)
		return;
	if (j->n == JOURNAL_WAITING) {
		j->lost++;
		return;
	}
	j->waiting[(j->first + j->n++) % JOURNAL_WAITING] = *event;
	journal_flush(j);
}
