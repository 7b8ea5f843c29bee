/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/process_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"

/* The pid namespace that the kernel has started with (PROC_PID_INIT_INO). */
#define FIRST_SPACE UINT64_C(0xEFFFFFFC)

struct ha_process_entry {
	struct ha_process_name name;
	pid_t here;
};

/* ---- taking the list ---- */

/* false: it has ended meanwhile (*err = 0), or may not be read. */
static bool read_status(pid_t pid, char *text, size_t size, int *err)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	*err = 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (n < 0 && errno != ENOENT && errno != ESRCH)
		*err = -errno;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* Its number in its own pid namespace, the last one of "NSpid:\t4711\t7"; 0: ours is its own. */
static int parse_inner(const char *status, pid_t *inner)
{
	static const char name[] = "\nNSpid:\t";
	const char *line = strstr(status, name), *last;

	*inner = 0;
	if (!line)
		return -EPROTO;
	line += sizeof(name) - 1;
	last = memrchr(line, '\t', strcspn(line, "\n"));
	if (last)
		*inner = (pid_t)strtol(last + 1, NULL, 10);
	return 0;
}

/* 0: it may not be read, which takes more rights than the rest. */
static uint64_t read_space(pid_t pid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	return stat(path, &st) ? 0 : st.st_ino;
}

static struct ha_process_entry *add_entry(struct ha_process_list *list)
{
	size_t room = list->room ? 2 * list->room : 64;
	struct ha_process_entry *more;

	if (list->n < list->room)
		return &list->entry[list->n++];
	more = realloc(list->entry, room * sizeof(*more));
	if (!more)
		return NULL;
	list->entry = more;
	list->room = room;
	return &list->entry[list->n++];
}

static int list_process(struct ha_process_list *list, pid_t pid)
{
	struct ha_process_entry *entry;
	char status[16384]; /* the groups of a user are before what we look for */
	pid_t inner;
	int err;

	if (!read_status(pid, status, sizeof(status), &err))
		return err;
	err = parse_inner(status, &inner);
	if (err || !inner)
		return err;
	entry = add_entry(list);
	if (!entry)
		return -ENOMEM;
	*entry = (struct ha_process_entry) { { inner, ha_process_start(pid), read_space(pid) },
					     pid };
	return 0;
}

/* From the host's pid namespace, and where /proc hides nobody. */
static bool sees_everybody(void)
{
	return ha_process_space() == FIRST_SPACE && ha_process_start(1);
}

static void take_list(struct ha_process_list *list)
{
	DIR *all = opendir("/proc");
	struct dirent *entry;

	list->taken = true;
	list->complete = all && sees_everybody();
	while (all && (entry = readdir(all))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid > 0 && list_process(list, pid))
			list->complete = false;
	}
	if (all)
		closedir(all);
}

/* ---- looking for one ---- */

static bool is_same(const struct ha_process_name *a, const struct ha_process_name *b)
{
	bool same_space = !a->space || a->space == b->space;

	return a->pid == b->pid && a->start == b->start && same_space;
}

static enum ha_process_state find_below(struct ha_process_list *list,
					const struct ha_process_name *name, pid_t *here)
{
	if (!list->taken)
		take_list(list);
	for (size_t i = 0; i < list->n; i++)
		if (is_same(&list->entry[i].name, name)) {
			*here = list->entry[i].here;
			return HA_PROCESS_RUNS;
		}
	return list->complete ? HA_PROCESS_ENDED : HA_PROCESS_UNKNOWN;
}

enum ha_process_state ha_process_find(struct ha_process_list *list,
				      const struct ha_process_name *name, pid_t *here)
{
	*here = 0;
	/* Without /proc we find nobody, not even ourselves, and know nothing. */
	if (!name->space || !name->start || !ha_process_start(getpid()))
		return HA_PROCESS_UNKNOWN;
	if (name->space != ha_process_space())
		return find_below(list, name, here);
	if (ha_process_start(name->pid) != name->start)
		return HA_PROCESS_ENDED;
	*here = name->pid;
	return HA_PROCESS_RUNS;
}

void ha_process_list_free(struct ha_process_list *list)
{
	free(list->entry);
	*list = (struct ha_process_list) { 0 };
}
