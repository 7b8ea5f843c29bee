/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/exporter/watcher.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "tools/status_read.h"

#define ENVIRONMENT_MAX 65536

void watcher_open(struct watcher *w, const char *pattern)
{
	struct rlimit files;
	rlim_t places = WATCHER_PROCESSES;

	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < places + WATCHER_SPARE)
		places = files.rlim_cur < 2 * WATCHER_SPARE ? WATCHER_SPARE
							    : files.rlim_cur - WATCHER_SPARE;
	*w = (struct watcher) { .pattern = pattern, .places = (unsigned)places };
}

/* ---- whose job a process is ---- */

static const char *find_variable(const char *environment, size_t size, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
		if (!strncmp(at, name, length) && at[length] == '=' && at[length + 1])
			return at + length + 1;
	return NULL;
}

/* Of a process of the page's owner alone: what a page says of itself may be another's number. */
static ssize_t read_environment(const struct watcher_process *p, char *environment, size_t size)
{
	struct stat owner;
	char path[64];
	ssize_t n = 0;
	int fd;

	if (!p->here)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)p->here);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (!fstat(fd, &owner) && owner.st_uid == p->uid)
		n = read(fd, environment, size - 1);
	close(fd);
	return n;
}

/* By what the launchers set; the program's name where there is none, or it may not be read. */
static void name_job(struct watcher_process *p)
{
	static const char *const names[] = { "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
					     "TORCHELASTIC_RUN_ID", "HOSTNAME_POD" };
	static char environment[ENVIRONMENT_MAX];
	const char *job = NULL;
	ssize_t n = read_environment(p, environment, sizeof(environment));

	snprintf(p->job, sizeof(p->job), "%s", p->page.header.program);
	if (n <= 0)
		return;
	environment[n] = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !job; i++)
		job = find_variable(environment, (size_t)n, names[i]);
	if (!job)
		return;
	snprintf(p->job, sizeof(p->job), "%s", job);
	for (char *c = p->job; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '_';
}

/* ---- counting ---- */

/* Why a connection left a rail is in the event that suspected it. */
static unsigned cause_of(const struct watcher *w, const struct ha_status_event *e, unsigned pid)
{
	uint64_t kept = w->events < WATCHER_RECENT ? w->events : WATCHER_RECENT;

	for (uint64_t i = 1; i <= kept && e->cause == HA_CAUSE_NONE; i++) {
		const struct watcher_event *before = &w->recent[(w->events - i) % WATCHER_RECENT];

		if (before->pid == pid && before->event.kind == HA_EVENT_SUSPECTED &&
		    before->event.rail == e->rail &&
		    !strcmp(before->event.connection, e->connection))
			return before->event.cause;
	}
	return e->cause;
}

static void count_failover(struct watcher *w, const struct ha_status_event *e)
{
	const char *device = e->device;
	uint64_t seconds = e->wall / HA_NS_PER_S;

	counters_add(&w->counters, COUNTER_FAILOVERS, device, ha_event_cause_text(e->cause), 1);
	counters_add(&w->counters, COUNTER_STALL, device, NULL, (double)e->stall / 1e9);
	counters_add(&w->counters, COUNTER_REQUESTS, device, NULL, (double)e->requests);
	counters_add(&w->counters, COUNTER_BYTES, device, NULL, (double)e->bytes);
	counters_raise(&w->counters, COUNTER_LAST_FAILOVER, device, (double)seconds);
}

static void count_event(struct watcher *w, const struct watcher_process *p,
			const struct ha_status_event *e)
{
	unsigned pid = p->page.header.pid;
	unsigned cause = e->kind == HA_EVENT_FAILED_OVER ? cause_of(w, e, pid) : e->cause;
	struct watcher_event *kept = &w->recent[w->events++ % WATCHER_RECENT];

	kept->event = *e;
	kept->event.cause = (uint16_t)cause;
	kept->pid = pid;
	memcpy(kept->job, p->job, sizeof(kept->job));
	counters_add(&w->counters, COUNTER_EVENTS, ha_event_kind_text(e->kind),
		     ha_event_cause_text(cause), 1);
	if (e->kind == HA_EVENT_FAILED_OVER)
		count_failover(w, &kept->event);
	if (w->report)
		w->report(w->user, kept);
}

static void count_events(struct watcher *w, struct watcher_process *p, bool last)
{
	int order[HA_STATUS_EVENTS], n;
	uint64_t missed;

	n = ha_status_events_from(&p->page, p->next_event, last, order, &missed);
	if (missed)
		counters_add(&w->counters, COUNTER_MISSED, NULL, NULL, (double)missed);
	for (int i = 0; i < n; i++) {
		const struct ha_status_event *e = &p->page.event[order[i]];

		count_event(w, p, e);
		p->next_event = e->number + 1;
	}
}

/* A record that another connection has taken begins anew. Returns messages since the last look. */
static double count_messages(struct watcher *w, struct watcher_process *p)
{
	double sum = 0;

	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &p->page.connection[i];
		struct watcher_connection *seen = &p->connection[i];
		uint64_t before = seen->since == c->since_wall ? seen->messages : 0;

		if (!c->seq || !c->used)
			continue;
		*seen = (struct watcher_connection) { c->since_wall, c->messages, c->sends };
		if (c->messages <= before)
			continue;
		sum += (double)(c->messages - before);
		counters_add(&w->counters, COUNTER_MESSAGES, c->sends ? "send" : "receive", NULL,
			     (double)(c->messages - before));
	}
	return sum;
}

static void count_unprotected(struct watcher *w, const struct watcher_process *p, double seconds)
{
	unsigned without = 0;

	for (int i = 0; i < HA_STATUS_CONNECTIONS; i++) {
		const struct ha_status_connection *c = &p->page.connection[i];

		without += c->seq && c->used && !c->lost && c->protection == HA_PROTECTION_NO;
	}
	counters_add(&w->counters, COUNTER_UNPROTECTED, NULL, NULL, without * seconds);
}

/* What a process did before this exporter was there, another one may have counted. */
static void go_on_from_mark(struct watcher *w, struct watcher_process *p)
{
	const struct ha_status_header *h = &p->page.header;

	p->counted = true;
	name_job(p);
	for (unsigned i = 0; i < w->marks; i++)
		if (w->mark[i].pid == h->pid && w->mark[i].start == h->start_ticks) {
			p->next_event = w->mark[i].next_event;
			for (int k = 0; k < HA_STATUS_CONNECTIONS; k++)
				p->connection[k] = (struct watcher_connection) {
					p->page.connection[k].since_wall,
					p->page.connection[k].messages,
					p->page.connection[k].sends != 0
				};
			return;
		}
	counters_add(&w->counters, COUNTER_PROCESSES, NULL, NULL, 1);
}

/* ---- whether a process runs ---- */

/* Its number in our pid namespace, if it can be seen. */
static enum ha_process_state seek_process(struct watcher *w, struct watcher_process *p)
{
	const struct ha_status_header *h = &p->page.header;
	const struct ha_process_name name = { (pid_t)h->pid, h->start_ticks, h->pid_space };

	return ha_process_find(&w->list, &name, &p->here);
}

/* Of one that was counted in an earlier look: this one's list is newer. */
static bool has_ended(struct watcher *w, struct watcher_process *p)
{
	if (p->here)
		return ha_process_start(p->here) != p->page.header.start_ticks;
	if (p->sought)
		return false; /* it cannot be seen */
	if (seek_process(w, p) == HA_PROCESS_ENDED)
		return true;
	p->sought = true;
	name_job(p);
	return false;
}

/* ---- pages ---- */

/* Since the last look. */
static double seconds_since(const struct watcher *w, uint64_t now)
{
	return w->looked ? (double)(now - w->looked) / 1e9 : 0;
}

/* ---- places ---- */

/* For one more of a user who has `mine` of `all` that are taken, `most` there are. A user gets half
 * of what the others leave, so that something is left for whoever comes. */
static bool has_room(unsigned mine, unsigned all, unsigned most)
{
	return mine < (most - (all - mine)) / 2;
}

static bool has_place(const struct watcher *w, uid_t uid)
{
	unsigned mine = 0;

	for (unsigned i = 0; i < w->processes; i++)
		mine += w->process[i]->uid == uid;
	return has_room(mine, w->processes, w->places);
}

/* false: there is no room. */
static bool remember_left(struct watcher *w, const struct watcher_process *p)
{
	unsigned mine = 0;

	for (unsigned i = 0; i < w->lefts; i++)
		mine += w->left[i].uid == p->uid;
	if (!has_room(mine, w->lefts, WATCHER_LEFT))
		return false;
	w->left[w->lefts++] = (struct watcher_left) { .inode = p->inode,
						      .uid = p->uid,
						      .pid = p->page.header.pid,
						      .start = p->page.header.start_ticks,
						      .next_event = p->next_event,
						      .found = true };
	return true;
}

/* 0, or a negative errno: what was read before stays. */
static int read_page(struct watcher_process *p)
{
	static struct ha_status_page page;
	const char *why;
	int err = ha_status_read(p->fd, &page, &why);

	if (!err)
		p->page = page;
	return err;
}

/* false: its file is gone, or is no page, or was counted to its end. `messages`: since the last
 * look. */
static bool read_process(struct watcher *w, struct watcher_process *p, uint64_t now,
			 double *messages)
{
	struct stat file;
	bool unlinked = fstat(p->fd, &file) || !file.st_nlink, ended;
	int err;

	if (p->ended) /* all of it has been counted; its file keeps the place */
		return !unlinked;
	/* Asked before the page is read: what an ended process has counted is in it. */
	ended = p->counted && has_ended(w, p);
	err = read_page(p);
	if (err == -ENOMEM) /* later: what it holds is not counted yet */
		return true;
	if (err == -EAGAIN) /* it is being made */
		return !unlinked;
	if (err) {
		w->refused += !unlinked;
		return false;
	}
	if (!p->counted) {
		seek_process(w, p);
		go_on_from_mark(w, p);
	}
	count_events(w, p, ended || unlinked);
	*messages += count_messages(w, p);
	p->ended = ended;
	p->silent = !p->here && ha_status_is_silent(&p->page, now);
	if (!unlinked && watcher_runs(p))
		count_unprotected(w, p, seconds_since(w, now));
	return !unlinked && !(ended && remember_left(w, p));
}

static bool is_known(struct watcher *w, ino_t inode)
{
	for (unsigned i = 0; i < w->processes; i++)
		if (w->process[i]->inode == inode)
			return true;
	for (unsigned i = 0; i < w->lefts; i++)
		if (w->left[i].inode == inode) {
			w->left[i].found = true;
			return true;
		}
	return false;
}

/* Of a failure to open: it has nothing to do with the file. */
static bool is_shortage(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* false: its maker has not come so far, and perhaps never will. */
static bool is_made(int fd)
{
	uint64_t magic;

	return pread(fd, &magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) && magic;
}

/* Takes the descriptor; false: no memory. */
static bool add_process(struct watcher *w, int fd, ino_t inode, const char *name, uid_t uid)
{
	struct watcher_process *p = calloc(1, sizeof(*p));

	if (!p) {
		close(fd);
		return false;
	}
	p->fd = fd;
	p->inode = inode;
	p->uid = uid;
	snprintf(p->name, sizeof(p->name), "%.63s", name);
	w->process[w->processes++] = p;
	return true;
}

static void open_page(struct watcher *w, int folder, const char *name, uid_t uid)
{
	struct stat file;
	int fd;

	if (fstatat(folder, name, &file, AT_SYMLINK_NOFOLLOW) || !S_ISREG(file.st_mode) ||
	    !file.st_size || is_known(w, file.st_ino))
		return;
	if (!has_place(w, uid)) {
		w->unplaced++;
		return;
	}
	fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		w->unplaced += is_shortage(errno);
		return;
	}
	if (fstat(fd, &file) || !S_ISREG(file.st_mode) || !is_made(fd))
		close(fd);
	else
		w->unplaced += !add_process(w, fd, file.st_ino, name, uid);
}

/* A directory of pages: its owner's alone. */
static void look_into(struct watcher *w, const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct dirent *entry;
	unsigned files = 0;
	struct stat folder;
	DIR *list;

	if (fd < 0) {
		w->partial |= is_shortage(errno);
		return;
	}
	list = fstat(fd, &folder) || folder.st_mode & (S_IWGRP | S_IWOTH) ? NULL : fdopendir(fd);
	if (!list) {
		close(fd);
		return;
	}
	while ((entry = readdir(list))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		if (files++ < WATCHER_FILES)
			open_page(w, dirfd(list), entry->d_name, folder.st_uid);
		else
			w->unplaced++;
	}
	closedir(list);
}

/* Every directory that the pattern fits: of each user where it has %u. */
static void look_everywhere(struct watcher *w)
{
	const char *user = strstr(w->pattern, "%u"), *slash = strrchr(w->pattern, '/');
	char parent[PATH_MAX], path[2 * PATH_MAX];
	struct dirent *entry;
	DIR *list;

	if (!user || !slash || user < slash) {
		look_into(w, w->pattern);
		return;
	}
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - w->pattern), w->pattern);
	list = opendir(*parent ? parent : "/");
	if (!list) {
		w->partial |= is_shortage(errno);
		return;
	}
	while ((entry = readdir(list))) {
		size_t length = (size_t)(user - slash - 1);

		if (strncmp(entry->d_name, slash + 1, length) || entry->d_name[length] < '0' ||
		    entry->d_name[length] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		look_into(w, path);
	}
	closedir(list);
}

static void drop_process(struct watcher *w, unsigned i)
{
	close(w->process[i]->fd);
	free(w->process[i]);
	w->process[i] = w->process[--w->processes];
}

/* Of a page that is left over and has been removed now nothing needs to be known. */
static void forget_left(struct watcher *w)
{
	for (unsigned i = 0; i < w->lefts && !w->partial;) {
		if (w->left[i].found)
			i++;
		else
			w->left[i] = w->left[--w->lefts];
	}
}

void watcher_look(struct watcher *w, uint64_t now)
{
	double seconds = seconds_since(w, now), messages = 0;

	w->refused = w->unplaced = 0;
	w->partial = false;
	for (unsigned i = 0; i < w->lefts; i++)
		w->left[i].found = false;
	look_everywhere(w);
	forget_left(w);
	for (unsigned i = 0; i < w->processes;) {
		if (read_process(w, w->process[i], now, &messages))
			i++;
		else
			drop_process(w, i);
	}
	ha_process_list_free(&w->list);
	w->rate[w->looks++ % WATCHER_SAMPLES] = seconds > 0 ? messages / seconds : 0;
	w->looked = now;
}

void watcher_close(struct watcher *w)
{
	while (w->processes)
		drop_process(w, 0);
	counters_free(&w->counters);
}
