/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may remove a file: its maker; and, when the maker is dead, whoever holds the lock on the
 * directory. The lock is only tried: a process that cannot have it leaves the cleaning to the one
 * that has. A name that is still taken by a dead process of our number is not waited for, we take
 * the next (<pid>.1, ...); so do further contexts of one process.
 */
#include "plugin/report/status_file.h"

#include "base/process.h"
#include "base/process_list.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAMES_MAX 64 /* contexts of one process that have a page */
/* a file without a header is older than this: its maker died over it */
#define UNBORN_SECONDS 60

void ha_status_put(void *record, const void *from, size_t size)
{
	uint32_t *to = record, seq = __atomic_load_n(to, __ATOMIC_RELAXED);
	const uint32_t *word = from;

	__atomic_store_n(to, seq + 1, __ATOMIC_RELAXED);
	/* Release, each: nobody sees a new word before the odd number. */
	for (size_t i = 1; i < size / sizeof(*to); i++)
		__atomic_store_n(&to[i], word[i], __ATOMIC_RELEASE);
	/* Release: who sees the even number sees all of it. Never 0 again. */
	__atomic_store_n(to, seq + 2 ? seq + 2 : 2, __ATOMIC_RELEASE);
}

static int open_directory(const char *dir)
{
	struct stat st;
	int fd;

	if (mkdir(dir, 0700) && errno != EEXIST)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* ---- what dead processes left ---- */

struct found {
	char name[NAME_MAX + 1];
	struct ha_process_name maker; /* all zero: its maker died before there was a header */
};

/* false: it is no page, or about to be one. */
static bool read_maker(int dir, const char *name, struct ha_process_name *maker)
{
	struct ha_status_header h;
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool good;

	if (fd < 0)
		return false;
	memset(&h, 0, sizeof(h));
	good = !fstat(fd, &st) && S_ISREG(st.st_mode) && read(fd, &h, sizeof(h)) >= 0;
	close(fd);
	if (!good || (h.magic && h.magic != HA_STATUS_MAGIC))
		return false;
	*maker = (struct ha_process_name) { (pid_t)h.pid, h.start_ticks, h.pid_space };
	if (h.magic)
		return true;
	*maker = (struct ha_process_name) { 0 };
	return st.st_mtime + UNBORN_SECONDS < time(NULL);
}

/* Room for one more, or NULL. */
static struct found *grow_found(struct found **found, size_t n)
{
	struct found *more = *found;

	if (!(n & (n - 1))) { /* a power of two: it is full */
		more = realloc(*found, (n ? 2 * n : 1) * sizeof(*more));
		if (!more)
			return NULL;
		*found = more;
	}
	return &more[n];
}

static size_t find_pages(DIR *list, struct found **found)
{
	struct dirent *entry;
	struct found *one;
	size_t n = 0;

	*found = NULL;
	while ((entry = readdir(list)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		one = grow_found(found, n);
		if (!one)
			break; /* the next process cleans the rest */
		if (!read_maker(dirfd(list), entry->d_name, &one->maker))
			continue;
		snprintf(one->name, sizeof(one->name), "%s", entry->d_name);
		n++;
	}
	return n;
}

/* All are read before anybody is looked for: ha_process_find() wants it so. */
static void remove_ended(DIR *list)
{
	struct ha_process_list processes = { 0 };
	struct found *found;
	size_t n = find_pages(list, &found);

	for (size_t i = 0; i < n; i++) {
		const struct ha_process_name *maker = &found[i].maker;
		pid_t here;

		if (!maker->pid || ha_process_find(&processes, maker, &here) == HA_PROCESS_ENDED)
			unlinkat(dirfd(list), found[i].name, 0);
	}
	ha_process_list_free(&processes);
	free(found);
}

static void remove_stale(int dir)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = again < 0 ? NULL : fdopendir(again);

	if (!list) {
		if (again >= 0)
			close(again);
		return;
	}
	if (!flock(dir, LOCK_EX | LOCK_NB)) {
		remove_ended(list);
		flock(dir, LOCK_UN);
	}
	closedir(list);
}

/* ---- our own ---- */

static int create_file(int dir, char *name, size_t size)
{
	for (int i = 0; i < NAMES_MAX; i++) {
		int fd;

		snprintf(name, size, i ? "%d.%d" : "%d", (int)getpid(), i);
		fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd >= 0 ? fd : -errno;
	}
	return -EEXIST;
}

static void read_word(const char *path, char *word, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, word, size - 1);

	word[n > 0 ? n : 0] = 0;
	word[strcspn(word, "\n")] = 0;
	if (fd >= 0)
		close(fd);
}

static void fill_header(struct ha_status_page *page, uint64_t started_wall, uint64_t started_mono)
{
	struct ha_status_header *h = &page->header;
	Dl_info info;

	h->version = HA_STATUS_VERSION;
	h->size = sizeof(*page);
	h->pid = (uint32_t)getpid();
	h->uid = (uint32_t)geteuid();
	h->pid_space = ha_process_space();
	h->start_ticks = ha_process_start(getpid());
	h->started_wall = started_wall;
	h->started_mono = started_mono;
	gethostname(h->host, sizeof(h->host) - 1);
	read_word("/proc/self/comm", h->program, sizeof(h->program));
	snprintf(h->hawser, sizeof(h->hawser), "%s", HAWSER_VERSION);
	if (dladdr((void *)(uintptr_t)ha_status_file_open, &info) && info.dli_fname)
		snprintf(h->plugin, sizeof(h->plugin), "%s", info.dli_fname);
	/* Release: a reader that finds the magic finds the rest. */
	__atomic_store_n(&h->magic, HA_STATUS_MAGIC, __ATOMIC_RELEASE);
}

/* The room is taken now: a full file system is an error here, not a SIGBUS later. */
static int map_page(struct ha_status_file *f, int fd)
{
	int err = -posix_fallocate(fd, 0, sizeof(*f->page));
	void *at;

	if (err)
		return err;
	at = mmap(NULL, sizeof(*f->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	f->page = at;
	return 0;
}

int ha_status_file_open(struct ha_status_file *f, const char *dir, uint64_t started_wall,
			uint64_t started_mono)
{
	int at = open_directory(dir), fd, err;
	char name[32];

	f->page = NULL;
	f->pid = getpid();
	if (at < 0)
		return at;
	remove_stale(at);
	fd = create_file(at, name, sizeof(name));
	err = fd < 0 ? fd : map_page(f, fd);
	if (fd >= 0)
		close(fd);
	if (err && fd >= 0)
		unlinkat(at, name, 0);
	close(at);
	if (err)
		return err;
	snprintf(f->path, sizeof(f->path), "%s/%s", dir, name);
	fill_header(f->page, started_wall, started_mono);
	return 0;
}

void ha_status_file_close(struct ha_status_file *f)
{
	if (!f->page)
		return;
	munmap(f->page, sizeof(*f->page));
	f->page = NULL;
	if (f->pid == getpid())
		unlink(f->path);
}
