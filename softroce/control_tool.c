/* SPDX-License-Identifier: BSD-3-Clause */
/* control_tool.c - the tools' side of the control page; see control.h */
#include "base/clock.h"
#include "softroce/control.h"
#include "softroce/folder.h"
#include "softroce/settings.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_NS INT64_C(1000000000) /* an owner that has a processor answers sooner */
/*
 * How long one is waited for that is not stopped: on a busy machine its NIC gets no processor. For
 * its counters, in whose place there are the last ones, and for a change.
 */
#define LOOK_NS 5000000000ull
#define CHANGE_NS 60000000000ull

static int entry_path(const struct sr_control_entry *entry, const char *suffix, char *path,
		      size_t len)
{
	char folder[256];

	return snprintf(path, len, "%s/%s%s", sr_folder_path(folder, sizeof(folder)), entry->name,
			suffix) < (int)len
		       ? 0
		       : -ENAMETOOLONG;
}

static int entry_open(const struct sr_control_entry *entry, int flags)
{
	char path[400];
	int fd;

	if (entry_path(entry, "", path, sizeof(path)))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static int page_read(int fd, struct sr_control_page *page)
{
	if (pread(fd, page, sizeof(*page), 0) != sizeof(*page) || page->magic != SR_CONTROL_MAGIC ||
	    page->version != SR_CONTROL_VERSION || page->size != sizeof(*page) ||
	    !memchr(page->device, 0, sizeof(page->device)))
		return -EINVAL;
	return 0;
}

/* Nobody holds the page any more: its owner died without tidying up. */
static bool page_stale(int fd)
{
	return !flock(fd, LOCK_SH | LOCK_NB);
}

static void entry_remove(const struct sr_control_entry *entry)
{
	char path[400];

	if (!entry_path(entry, "", path, sizeof(path)))
		unlink(path);
	if (!entry_path(entry, ".bell", path, sizeof(path)))
		unlink(path);
}

static bool selector_fits(const char *selector, const struct sr_control_page *page)
{
	size_t n;

	if (!selector)
		return true;
	n = strcspn(selector, "@:");
	if (strlen(page->device) != n || memcmp(page->device, selector, n))
		return false;
	if (selector[n] == '@') {
		char text[INET6_ADDRSTRLEN];

		for (int i = 0; i < 2; i++)
			if (!strcmp(sr_gid_text(page->gid[i], text), selector + n + 1))
				return true;
		return false;
	}
	return !selector[n] || page->pid == strtoul(selector + n + 1, NULL, 10);
}

/* "<device>.<pid>" and nothing else. */
static bool name_of_page(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot && dot != name && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1);
}

static bool entry_read(struct sr_control_entry *entry, const char *name)
{
	int fd;
	bool ok = false;

	if (!name_of_page(name) || strlen(name) >= sizeof(entry->name))
		return false;
	snprintf(entry->name, sizeof(entry->name), "%s", name);
	fd = entry_open(entry, O_RDONLY);
	if (fd < 0)
		return false;
	if (page_stale(fd))
		entry_remove(entry);
	else
		ok = !page_read(fd, &entry->page);
	close(fd);
	return ok;
}

static int entry_compare(const void *a, const void *b)
{
	const struct sr_control_entry *x = a, *y = b;
	int order = strcmp(x->page.device, y->page.device);

	return order ? order : (x->page.pid > y->page.pid) - (x->page.pid < y->page.pid);
}

struct sr_control_entry *sr_control_list(const char *selector, int *n)
{
	struct sr_control_entry *list = NULL, entry;
	char folder[256];
	DIR *dir = opendir(sr_folder_path(folder, sizeof(folder)));

	*n = 0;
	if (!dir) {
		*n = errno == ENOENT && !sr_settings()->control_dir ? 0 : -errno;
		return NULL;
	}
	for (struct dirent *de = readdir(dir); de; de = readdir(dir)) {
		struct sr_control_entry *grown;

		if (!entry_read(&entry, de->d_name) || !selector_fits(selector, &entry.page))
			continue;
		grown = realloc(list, (*n + 1) * sizeof(*list));
		if (!grown)
			break;
		list = grown;
		list[(*n)++] = entry;
	}
	closedir(dir);
	if (list)
		qsort(list, *n, sizeof(*list), entry_compare);
	return list;
}

static int bell_ring(const struct sr_control_entry *entry)
{
	char path[400];
	int fd, err = 0;

	if (entry_path(entry, ".bell", path, sizeof(path)))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -ESRCH;
	if (write(fd, "!", 1) != 1 && errno != EAGAIN) /* a full FIFO rings as well */
		err = -ESRCH;
	close(fd);
	return err;
}

/* By a signal or a debugger; false where the kernel does not show us the process. */
static bool process_stopped(uint32_t pid)
{
	char path[32], text[512];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	state = strrchr(text, ')'); /* the program's name may have brackets, too */
	return state && (!strncmp(state, ") T", 3) || !strncmp(state, ") t", 3));
}

/*
 * Wait until the owner has published after `published`, with the faults of `seq` in force.
 *
 * What was asked for stays on the page, and takes effect when the owner gets to it: a wait that
 * ends too soon calls a change failed that is made all the same. So only a stopped owner is given
 * up at once; one that is busy has a minute.
 */
static int answer_wait(int fd, struct sr_control_entry *entry, uint64_t published, uint64_t seq,
		       uint64_t limit_ns)
{
	const struct timespec nap = { .tv_nsec = 200000 };
	const int64_t began = ha_monotonic_ns();
	int64_t look_at = began + ANSWER_NS;

	for (int64_t now = began; (uint64_t)(now - began) < limit_ns; now = ha_monotonic_ns()) {
		bool ended = page_stale(fd); /* before the read: what it wrote last counts */

		if (!page_read(fd, &entry->page) && entry->page.published != published &&
		    entry->page.applied >= seq)
			return 0;
		if (ended)
			return -ESRCH;
		if (now >= look_at) {
			if (process_stopped(entry->page.pid))
				return -ETIMEDOUT;
			look_at = now + ANSWER_NS;
		}
		nanosleep(&nap, NULL);
	}
	return -EBUSY;
}

static int lock_tools(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLKW, &lock) ? -errno : 0;
}

int sr_control_change(struct sr_control_entry *entry,
		      void (*change)(struct sr_faults *faults, void *arg), void *arg)
{
	const size_t from = offsetof(struct sr_control_page, faults_seq);
	const size_t len = sizeof(struct sr_control_page) - from;
	struct sr_control_page *page = &entry->page;
	uint64_t published;
	int fd = entry_open(entry, O_RDWR), err;

	if (fd < 0)
		return -ESRCH;
	err = lock_tools(fd, F_WRLCK); /* two tools at once must not lose one's change */
	if (!err)
		err = page_stale(fd) ? -ESRCH : page_read(fd, page);
	if (!err) {
		published = page->published;
		change(&page->faults, arg);
		page->faults_seq++;
		if (pwrite(fd, (char *)page + from, len, from) != (ssize_t)len)
			err = -EIO;
	}
	if (!err)
		err = bell_ring(entry);
	if (!err)
		err = answer_wait(fd, entry, published, page->faults_seq, CHANGE_NS);
	close(fd);
	return err;
}

int sr_control_refresh(struct sr_control_entry *entry)
{
	uint64_t published = entry->page.published;
	int fd = entry_open(entry, O_RDONLY), err;

	if (fd < 0)
		return -ESRCH;
	err = page_stale(fd) ? -ESRCH : bell_ring(entry);
	if (!err)
		err = answer_wait(fd, entry, published, 0, LOOK_NS);
	close(fd);
	return err;
}
