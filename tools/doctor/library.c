/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_PLUGIN "libnccl-net.so"
#define NET_OLDEST 6
#define NET_NEWEST 12

static void take_path(struct doctor_library *library, void *handle)
{
	struct link_map *map = NULL;

	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) || !map || !map->l_name[0])
		return;
	if (!realpath(map->l_name, library->path))
		snprintf(library->path, sizeof(library->path), "%s", map->l_name);
}

/* Every version's table begins with the network's name. */
static void take_tables(struct doctor_library *library, void *handle)
{
	char symbol[32];

	for (int version = NET_OLDEST; version <= NET_NEWEST; version++) {
		const char *const *table;

		snprintf(symbol, sizeof(symbol), "ncclNetPlugin_v%d", version);
		table = dlsym(handle, symbol);
		if (!table)
			continue;
		library->net |= 1U << version;
		snprintf(library->network, sizeof(library->network), "%s", *table ? *table : "");
	}
}

static void take_version(struct doctor_library *library, void *handle)
{
	const char *const *version = dlsym(handle, "hawser_plugin_version");

	if (version && *version)
		snprintf(library->hawser, sizeof(library->hawser), "%s", *version);
}

static void open_here(struct doctor_library *library)
{
	void *handle = dlopen(library->name, RTLD_NOW | RTLD_LOCAL), *function;
	int (*get_version)(int *version);

	if (!handle) {
		snprintf(library->error, sizeof(library->error), "%s", dlerror());
		return;
	}
	library->found = true;
	take_path(library, handle);
	take_tables(library, handle);
	take_version(library, handle);
	function = dlsym(handle, "ncclGetVersion");
	memcpy(&get_version, &function, sizeof(function));
	if (function && get_version(&library->nccl_version))
		library->nccl_version = 0;
}

static bool read_whole(int fd, void *to, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, (char *)to + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static void note_end(struct doctor_library *library, int status)
{
	if (WIFSIGNALED(status))
		snprintf(library->error, sizeof(library->error),
			 "a process that opened it was killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else
		snprintf(library->error, sizeof(library->error),
			 "a process that opened it ended with status %d", WEXITSTATUS(status));
}

void doctor_library_probe(struct doctor_library *library, const char *name)
{
	struct doctor_library answer;
	int ends[2], status = 0;
	bool whole;
	pid_t pid;

	*library = (struct doctor_library) { .asked = true };
	snprintf(library->name, sizeof(library->name), "%s", name);
	if (pipe(ends)) {
		snprintf(library->error, sizeof(library->error), "no pipe: %s", strerror(errno));
		return;
	}
	fflush(NULL);
	pid = fork();
	if (!pid) {
		close(ends[0]);
		open_here(library);
		_exit(write(ends[1], library, sizeof(*library)) != (ssize_t)sizeof(*library));
	}
	close(ends[1]);
	whole = pid > 0 && read_whole(ends[0], &answer, sizeof(answer));
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (whole)
		*library = answer;
	else
		note_end(library, status);
}

/* NCCL adds its prefix to what is neither a path nor the name of a library. */
static bool is_short_name(const char *name)
{
	size_t length = strlen(name);

	if (strchr(name, '/'))
		return false;
	return strncmp(name, "lib", 3) || length < 3 || strcmp(name + length - 3, ".so");
}

static void probe_name(struct doctor_library *library, const char *name)
{
	char full[PATH_MAX];

	doctor_library_probe(library, name);
	if (library->found || !is_short_name(name))
		return;
	snprintf(full, sizeof(full), "libnccl-net-%s.so", name);
	doctor_library_probe(library, full);
}

void doctor_plugin_find(struct doctor_library *library, const char *names)
{
	char list[PATH_MAX], *rest = list, *name;

	if (!names) {
		doctor_library_probe(library, DEFAULT_PLUGIN);
		return;
	}
	snprintf(list, sizeof(list), "%s", names);
	while ((name = strtok_r(rest, ",", &rest))) {
		probe_name(library, name);
		if (library->found && library->net)
			return;
	}
}
