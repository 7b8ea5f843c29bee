/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/status_read.h"

#include "base/clock.h"
#include "base/config.h"
#include "base/process.h"
#include "base/process_list.h"
#include "base/utf8.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ATTEMPTS 50    /* copies of a page that keeps changing */
#define PAGES_MAX 4096 /* processes of one user that are looked at */
/* Without connections the service thread writes every 60 s (SLEEP_MAX_NS in service.c), with them
 * every second: three such times, because it may have to wait for a processor. */
#define SILENT_NS (180 * HA_NS_PER_S)

/* ---- one page ---- */

/* The records behind the header: where, how many, how large. */
static const struct {
	size_t offset, count, size;
} tables[] = {
	{ offsetof(struct ha_status_page, totals), 1, sizeof(struct ha_status_totals) },
	{ offsetof(struct ha_status_page, device), HA_STATUS_DEVICES,
	  sizeof(struct ha_status_device) },
	{ offsetof(struct ha_status_page, connection), HA_STATUS_CONNECTIONS,
	  sizeof(struct ha_status_connection) },
	{ offsetof(struct ha_status_page, event), HA_STATUS_EVENTS,
	  sizeof(struct ha_status_event) },
};

#define TABLES (sizeof(tables) / sizeof(tables[0]))

static uint32_t seq_at(const void *page, size_t at)
{
	uint32_t seq;

	memcpy(&seq, (const char *)page + at, sizeof(seq));
	return seq;
}

/* `before` and `after` were read one after the other. A record whose number is even and the same in
 * both did not change while it was copied into `before`: that copy is whole. Returns how many
 * records are still missing. */
static size_t take_whole(struct ha_status_page *page, const struct ha_status_page *before,
			 const struct ha_status_page *after, bool *done)
{
	size_t missing = 0, r = 0;

	for (size_t t = 0; t < TABLES; t++)
		for (size_t i = 0; i < tables[t].count; i++, r++) {
			size_t at = tables[t].offset + i * tables[t].size;
			uint32_t seq = seq_at(before, at);

			if (done[r])
				continue;
			done[r] = !(seq & 1) && seq == seq_at(after, at);
			if (done[r])
				memcpy((char *)page + at, (const char *)before + at,
				       tables[t].size);
			missing += !done[r];
		}
	return missing;
}

static bool read_all(int fd, struct ha_status_page *page)
{
	return pread(fd, page, sizeof(*page), 0) == (ssize_t)sizeof(*page);
}

static int copy_records(int fd, struct ha_status_page *page)
{
	struct ha_status_page *two = malloc(2 * sizeof(*two));
	bool done[1 + HA_STATUS_DEVICES + HA_STATUS_CONNECTIONS + HA_STATUS_EVENTS] = { false };
	int err = two ? 0 : -ENOMEM;

	if (!err && !read_all(fd, &two[0]))
		err = -EIO;
	for (int i = 0; i < ATTEMPTS && !err; i++) {
		if (!read_all(fd, &two[~i & 1]))
			err = -EIO;
		else if (!take_whole(page, &two[i & 1], &two[~i & 1], done))
			break;
		else
			sched_yield();
	}
	free(two);
	return err;
}

static void print_safe(char *text, size_t size)
{
	text[size - 1] = 0;
	while (*text) {
		int n = ha_utf8(text);

		if (!ha_utf8_printable(text, n))
			memset(text, '?', n ? (size_t)n : 1);
		text += n ? n : 1;
	}
}

#define PRINT_SAFE(array) print_safe(array, sizeof(array))

static void sanitize_page(struct ha_status_page *page)
{
	PRINT_SAFE(page->header.host);
	PRINT_SAFE(page->header.program);
	PRINT_SAFE(page->header.hawser);
	PRINT_SAFE(page->header.plugin);
	for (int i = 0; i < HA_STATUS_DEVICES; i++)
		PRINT_SAFE(page->device[i].name);
	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		struct ha_status_connection *c = &page->connection[i];

		PRINT_SAFE(c->name);
		if (c->nrails > HA_STATUS_RAILS)
			memset(c, 0, sizeof(*c));
		for (int k = 0; k < HA_STATUS_RAILS; k++) {
			PRINT_SAFE(c->rail[k].peer);
			if (c->rail[k].device >= HA_STATUS_DEVICES)
				c->rail[k].device = UINT16_MAX;
		}
	}
	for (int i = 0; i < HA_STATUS_EVENTS; i++) {
		struct ha_status_event *e = &page->event[i];

		PRINT_SAFE(e->connection);
		PRINT_SAFE(e->device);
		PRINT_SAFE(e->peer_device);
		PRINT_SAFE(e->text);
		if (e->number % HA_STATUS_EVENTS != (unsigned)i || e->rail < -1 ||
		    e->rail >= HA_STATUS_RAILS)
			memset(e, 0, sizeof(*e));
	}
}

int ha_status_read(int fd, struct ha_status_page *page, const char **why)
{
	struct ha_status_header *h = &page->header;
	struct stat st;
	int err;

	*why = "";
	memset(page, 0, sizeof(*page));
	if (fstat(fd, &st))
		return -errno;
	*why = "it is no status page";
	if (!S_ISREG(st.st_mode) || pread(fd, h, sizeof(*h), 0) < 0)
		return -EPROTO;
	if (!h->magic && st.st_size <= (off_t)sizeof(*page))
		return -EAGAIN;
	if (h->magic != HA_STATUS_MAGIC)
		return -EPROTO;
	*why = "it is of another version of hawser; use that version's `ha`";
	if (h->version != HA_STATUS_VERSION)
		return -EPROTO;
	*why = "it is damaged: its size is wrong";
	if (h->size != sizeof(*page) || st.st_size != (off_t)sizeof(*page))
		return -EPROTO;
	err = copy_records(fd, page);
	if (err)
		return err == -EIO ? -EPROTO : err; /* it has become shorter */
	*why = "";
	sanitize_page(page);
	return 0;
}

static int by_number(const void *a, const void *b, void *page)
{
	const struct ha_status_event *events = ((const struct ha_status_page *)page)->event;
	uint64_t x = events[*(const int *)a].number, y = events[*(const int *)b].number;

	return (x > y) - (x < y);
}

int ha_status_events(const struct ha_status_page *page, int order[HA_STATUS_EVENTS])
{
	int n = 0;

	for (int i = 0; i < HA_STATUS_EVENTS; i++)
		if (page->event[i].seq)
			order[n++] = i;
	qsort_r(order, (size_t)n, sizeof(*order), by_number, (void *)(uintptr_t)page);
	return n;
}

/* One of the numbers from..to-1, none of which is on the page, is still to come: what is in its
 * place is older. A newer one has overwritten it, as have all that are a whole table behind. */
static bool is_one_to_come(const struct ha_status_page *page, uint64_t from, uint64_t to,
			   uint64_t newest)
{
	uint64_t i = newest >= HA_STATUS_EVENTS ? newest - HA_STATUS_EVENTS + 1 : 0;

	for (i = i > from ? i : from; i < to; i++) {
		const struct ha_status_event *e = &page->event[i % HA_STATUS_EVENTS];

		if (!e->seq || e->number < i)
			return true;
	}
	return false;
}

int ha_status_events_from(const struct ha_status_page *page, uint64_t next, bool last,
			  int order[HA_STATUS_EVENTS], uint64_t *missed)
{
	int n = ha_status_events(page, order), taken = 0;
	uint64_t newest = n ? page->event[order[n - 1]].number : 0;

	*missed = 0;
	for (int i = 0; i < n; i++) {
		uint64_t number = page->event[order[i]].number;

		if (number < next)
			continue;
		if (!last && is_one_to_come(page, next, number, newest))
			break;
		*missed += number - next;
		next = number + 1;
		order[taken++] = order[i];
	}
	return taken;
}

/* ---- all of them ---- */

bool ha_status_is_silent(const struct ha_status_page *page, uint64_t now)
{
	return page->totals.updated_mono + SILENT_NS < now;
}

static void judge_process(struct ha_status_found *f, struct ha_process_list *processes)
{
	const struct ha_status_header *h = &f->page->header;
	const struct ha_process_name name = { (pid_t)h->pid, h->start_ticks, h->pid_space };
	enum ha_process_state state = ha_process_find(processes, &name, &f->pid);

	f->foreign = !h->pid_space || h->pid_space != ha_process_space();
	f->ended = state == HA_PROCESS_ENDED;
	f->silent = state == HA_PROCESS_UNKNOWN &&
		    ha_status_is_silent(f->page, ha_clock_now(&ha_clock_live));
}

/* When all are read: ha_process_find() wants it so. */
static void judge_processes(struct ha_status_found *found, size_t n)
{
	struct ha_process_list processes = { 0 };

	for (size_t i = 0; i < n; i++)
		if (found[i].page)
			judge_process(&found[i], &processes);
	ha_process_list_free(&processes);
}

/* false: nothing to show. */
static bool look_at(int dir, const char *name, struct ha_status_found *f)
{
	int err, fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return false;
	memset(f, 0, sizeof(*f));
	snprintf(f->name, sizeof(f->name), "%.63s", name);
	PRINT_SAFE(f->name);
	f->why = "it cannot be opened";
	if (fd < 0)
		return true;
	f->page = malloc(sizeof(*f->page));
	err = f->page ? ha_status_read(fd, f->page, &f->why) : -ENOMEM;
	close(fd);
	if (!err)
		return true;
	free(f->page);
	f->page = NULL;
	if (!*f->why || err == -ENOMEM)
		f->why = strerror(-err);
	return err != -EAGAIN;
}

static int by_pid(const void *a, const void *b)
{
	const struct ha_status_found *x = a, *y = b;
	unsigned long i = strtoul(x->name, NULL, 10), k = strtoul(y->name, NULL, 10);

	return i != k ? (i > k) - (i < k) : strcmp(x->name, y->name);
}

static int scan_pages(DIR *list, struct ha_status_found **found, size_t *n)
{
	struct ha_status_found *all = NULL, *more;
	struct dirent *entry;
	size_t room = 0;

	while ((entry = readdir(list)) != NULL && *n < PAGES_MAX) {
		if (entry->d_name[0] == '.')
			continue;
		if (*n == room) {
			room = room ? 2 * room : 16;
			more = realloc(all, room * sizeof(*all));
			if (!more) {
				ha_status_scan_free(all, *n);
				*n = 0;
				return -ENOMEM;
			}
			all = more;
		}
		*n += look_at(dirfd(list), entry->d_name, &all[*n]);
	}
	judge_processes(all, *n);
	if (*n)
		qsort(all, *n, sizeof(*all), by_pid);
	*found = all;
	return 0;
}

int ha_status_dir(const struct ha_config *config, const char *given, char *dir, size_t size)
{
	if (!given && !strcmp(config->status_dir, "none"))
		return -ENOENT;
	return ha_process_expand(given ? given : config->status_dir, dir, size) ? 0 : -ENAMETOOLONG;
}

/* What is read is printed, nothing else: root may look at anybody's. */
static bool is_trusted(const struct stat *st)
{
	bool may_read = !geteuid() || st->st_uid == geteuid();

	return may_read && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

int ha_status_scan(const char *dir, struct ha_status_found **found, size_t *n)
{
	int err, fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	DIR *list;

	*found = NULL;
	*n = 0;
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) || !is_trusted(&st)) {
		close(fd);
		return -EPERM;
	}
	list = fdopendir(fd);
	if (!list) {
		close(fd);
		return -ENOMEM;
	}
	err = scan_pages(list, found, n);
	closedir(list);
	return err;
}

const char *ha_status_scan_why(int err)
{
	if (err == -EPERM)
		return "it is another user's (look as that user or as root), or others than its "
		       "owner may write to it";
	if (err == -ENOTDIR)
		return "it is no directory, or a link to one; give the directory itself that "
		       "HA_NCCL_STATUS_DIR names for the processes";
	return strerror(-err);
}

void ha_status_scan_free(struct ha_status_found *found, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(found[i].page);
	free(found);
}
