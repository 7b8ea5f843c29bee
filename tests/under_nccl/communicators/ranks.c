/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "tests/base/folder.h"
#include "tests/under_nccl/communicators/footprint.h"
#include "tests/under_nccl/communicators/ranks.h"
#include "tools/job/fault.h"

static char folder[64] = "/tmp/under-nccl-XXXXXX";
static char libnccl_path[PATH_MAX];

const char *ranks_folder(void)
{
	return folder;
}

const char *ranks_libnccl(void)
{
	return libnccl_path;
}

static void set_path(const char *name, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	CHECK(!setenv(name, path, 1));
}

void ranks_prepare(const char *libnccl, const char *plugin)
{
	char control[96];

	CHECK(realpath(libnccl, libnccl_path));
	CHECK(mkdtemp(folder));
	snprintf(control, sizeof(control), "%s/control", folder);
	CHECK(!mkdir(control, 0700));
	set_path("SOFTROCE_CONTROL", "control");
	set_path("HA_NCCL_EVENTS", "events");
	set_path("HA_NCCL_STATUS_DIR", "status");
	set_path("NCCL_DEBUG_FILE", "log.%p");
	setenv("NCCL_DEBUG", "INFO", 1);
	setenv("NCCL_DEBUG_SUBSYS", "INIT,NET", 1);
	setenv("NCCL_NET_PLUGIN", plugin, 1);
	setenv("NCCL_SOCKET_IFNAME", "lo", 1);
	setenv("HA_NCCL_VERBS", "soft", 1);
	/* most of the time of a communicator's making goes into the pages of its buffers */
	setenv("NCCL_BUFFSIZE", "131072", 1);
	setenv("NCCL_MAX_NCHANNELS", "2", 1);
	setenv("SOFTCUDA_DEVICES", "1", 1);
}

/* ---- the end of a test ---- */

/* NCCL's warnings of all ranks, and the plugin's but for what becomes of single paths. */
static void print_warnings(void)
{
	char path[PATH_MAX], line[1024];
	struct dirent *entry;
	DIR *dir = opendir(folder);
	FILE *file;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "log.", 4))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		file = fopen(path, "r");
		while (file && fgets(line, sizeof(line), file))
			if (strstr(line, "WARN") && !strstr(line, "journal.c"))
				fprintf(stderr, "%s: %s", entry->d_name, line);
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
}

static void end_test(struct ranks *ranks)
{
	for (int r = 0; r < ranks->count; r++) {
		fprintf(stderr, "rank %d: %u collectives compared; last: %s\n", r,
			atomic_load(&ranks->shared->rounds[r]), ranks->shared->where[r]);
		if (!(ranks->ended >> r & 1))
			kill(ranks->pid[r], SIGKILL);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	print_warnings();
	if (getenv("KEEP"))
		fprintf(stderr, "logs: %s\n", folder);
	else
		(void)folder_remove(folder);
	exit(1);
}

/* ---- looking on ---- */

static int64_t read_clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

void ranks_sleep(void)
{
	nanosleep(&(struct timespec) { .tv_nsec = 2000000 }, NULL);
}

static void take_end(struct ranks *ranks, int rank, int status)
{
	ranks->ended |= 1u << rank;
	if (ranks->may_die >> rank & 1)
		return;
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return;
	if (WIFSIGNALED(status))
		fprintf(stderr, "rank %d was ended by signal %d (%s)\n", rank, WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "rank %d ended with status %d\n", rank, WEXITSTATUS(status));
	end_test(ranks);
}

/* Grows with everything that a rank does and notes. */
static uint64_t count_signs(const struct ranks *ranks)
{
	const struct ranks_shared *shared = ranks->shared;
	uint64_t signs = (uint64_t)atomic_load(&shared->notes) + atomic_load(&shared->stage) +
			 (uint64_t)__builtin_popcount(ranks->ended);

	for (int r = 0; r < ranks->count; r++)
		signs += (uint64_t)atomic_load(&shared->arrived[r]) +
			 atomic_load(&shared->rounds[r]);
	return signs;
}

static bool is_hanging(struct ranks *ranks)
{
	uint64_t signs = count_signs(ranks);

	if (signs != ranks->signs || !ranks->sign_at) {
		ranks->signs = signs;
		ranks->sign_at = read_clock_s();
	}
	return read_clock_s() - ranks->sign_at > RANKS_HANG_S;
}

/* One look at all ranks, then a nap. Ends the test when one has failed or they hang. */
static void look_at_ranks(struct ranks *ranks)
{
	int status;

	for (int r = 0; r < ranks->count; r++)
		if (!(ranks->ended >> r & 1) &&
		    waitpid(ranks->pid[r], &status, WNOHANG) == ranks->pid[r])
			take_end(ranks, r, status);
	if (is_hanging(ranks)) {
		fprintf(stderr, "hangs: nothing for %d s\n", RANKS_HANG_S);
		end_test(ranks);
	}
	ranks_sleep();
}

void ranks_await_rounds(struct ranks *ranks, int rank, unsigned more)
{
	unsigned wanted = atomic_load(&ranks->shared->rounds[rank]) + more;

	while (atomic_load(&ranks->shared->rounds[rank]) < wanted) {
		if (ranks->ended >> rank & 1) {
			fprintf(stderr,
				"rank %d has ended before its collectives were enough for the "
				"test\n",
				rank);
			end_test(ranks);
		}
		look_at_ranks(ranks);
	}
}

void ranks_await_stage(struct ranks *ranks, unsigned stage)
{
	while (atomic_load(&ranks->shared->stage) < stage)
		look_at_ranks(ranks);
}

void ranks_await_end(struct ranks *ranks, int rank)
{
	while (!(ranks->ended >> rank & 1))
		look_at_ranks(ranks);
}

void ranks_kill(struct ranks *ranks, int rank)
{
	ranks->may_die |= 1u << rank;
	CHECK(!kill(ranks->pid[rank], SIGKILL));
}

int ranks_events(const char *text)
{
	char path[128], line[4096];
	int n = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/events", folder);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		n += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return n;
}

bool ranks_log_has(const char *text)
{
	char command[256];

	snprintf(command, sizeof(command), "grep -qs '%s' %s/log.*", text, folder);
	return !system(command);
}

void ranks_find_call(void *library, void *call, const char *name)
{
	void *symbol = dlsym(library, name);

	CHECK(symbol);
	memcpy(call, &symbol, sizeof(symbol));
}

/* ---- a rank ---- */

static void start_rank(struct ranks *ranks, int rank, void (*body)(struct rank *me))
{
	static struct rank me;
	char host[96];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	footprint_prepare();
	snprintf(host, sizeof(host), "%s-%d", folder, rank);
	setenv("NCCL_HOSTID", host, 1);
	me = (struct rank) {
		.rank = rank,
		.count = ranks->count,
		.alive = (1u << ranks->count) - 1,
		.shared = ranks->shared,
	};
	body(&me);
	rank_note(&me, "the end of the process");
	exit(0);
}

void ranks_run(int count, void (*body)(struct rank *me), void (*look)(struct ranks *ranks))
{
	struct ranks ranks = { .count = count };

	ranks.shared = mmap(NULL, sizeof(*ranks.shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(ranks.shared != MAP_FAILED);
	fflush(NULL);
	for (int r = 0; r < count; r++) {
		ranks.pid[r] = fork();
		CHECK(ranks.pid[r] >= 0);
		if (!ranks.pid[r])
			start_rank(&ranks, r, body);
	}
	if (look)
		look(&ranks);
	while (ranks.ended != (1u << count) - 1)
		look_at_ranks(&ranks);
	munmap(ranks.shared, sizeof(*ranks.shared));
	if (!getenv("KEEP"))
		(void)folder_remove(folder);
}

void rank_note(struct rank *me, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(me->shared->where[me->rank], sizeof(me->shared->where[0]), format, args);
	va_end(args);
	atomic_fetch_add(&me->shared->notes, 1);
}

void rank_barrier(struct rank *me)
{
	unsigned mine = ++me->barriers;

	atomic_store(&me->shared->arrived[me->rank], mine);
	for (int r = 0; r < me->count; r++)
		while (me->alive >> r & 1 && atomic_load(&me->shared->arrived[r]) < mine)
			ranks_sleep();
}

struct nccl_unique_id rank_next_id(struct rank *me)
{
	unsigned at = me->ids++ % RANKS_IDS;
	bool first = !(me->alive & ((1u << me->rank) - 1));

	if (first)
		CHECK_INT(me->library.nccl.get_unique_id(&me->shared->ids[at]), 0);
	rank_barrier(me);
	return me->shared->ids[at];
}

/* ---- NCCL ---- */

static void find_call(void *handle, void *call, const char *name)
{
	void *function = dlsym(handle, name);

	memcpy(call, &function, sizeof(function));
}

void rank_open_library(struct rank *me)
{
	void *handle;

	if (ha_library_open(&me->library, libnccl_path)) {
		fprintf(stderr, "%s\n", ha_fault_text());
		exit(1);
	}
	handle = dlopen(libnccl_path, RTLD_NOW | RTLD_NOLOAD);
	CHECK(handle);
	find_call(handle, &me->calls.finalize, "ncclCommFinalize");
	find_call(handle, &me->calls.split, "ncclCommSplit");
	find_call(handle, &me->calls.shrink, "ncclCommShrink");
	find_call(handle, &me->calls.count, "ncclCommCount");
	find_call(handle, &me->calls.user_rank, "ncclCommUserRank");
	CHECK(!dlclose(handle));
	CHECK_INT(me->library.cuda.set_device(0), 0);
}
