/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/under_nccl/communicators/footprint.h"

#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tests/under_nccl/communicators/ranks.h"

static long count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	long n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static long count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[4096];
	long n = 0;

	CHECK(maps);
	while (fgets(line, sizeof(line), maps))
		n++;
	fclose(maps);
	return n;
}

static long read_memory_kb(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	long anonymous = 0, shared = 0;
	char line[256];

	CHECK(status);
	while (fgets(line, sizeof(line), status)) {
		(void)sscanf(line, "RssAnon: %ld", &anonymous);
		(void)sscanf(line, "RssShmem: %ld", &shared);
	}
	fclose(status);
	return anonymous + shared;
}

static void add_name(char names[FOOTPRINT_NAMES], const char *name)
{
	size_t used = strlen(names);

	snprintf(names + used, FOOTPRINT_NAMES - used, "%s%s", used ? " " : "", name);
}

/* Not those of the plugin that connect queue pairs, which it keeps for ten seconds after their last
 * one, and not the first that destroys queue pairs, which it keeps once a path has ended in error:
 * the other rank may have looked at itself, and ended, before this one does. */
static bool is_thread_that_stays(const char *name, unsigned *reapers)
{
	if (!strncmp(name, "hawser-connect", 14))
		return false;
	return strncmp(name, "hawser-reaper", 13) || (*reapers)++;
}

static long count_threads_that_stay(char names[FOOTPRINT_NAMES])
{
	DIR *dir = opendir("/proc/self/task");
	char path[320], name[32];
	struct dirent *entry;
	unsigned reapers = 0;
	long n = 0;
	FILE *file;

	CHECK(dir);
	names[0] = 0;
	while ((entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = entry->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file) && is_thread_that_stays(name, &reapers)) {
			name[strcspn(name, "\n")] = 0;
			add_name(names, name);
			n++;
		}
		fclose(file);
	}
	closedir(dir);
	return n;
}

/* Some of NCCL's threads end after the call that they worked for: the fewest of many looks. */
static void count_threads(struct footprint *f)
{
	char names[FOOTPRINT_NAMES];
	long n;

	f->threads = count_threads_that_stay(f->names);
	for (int i = 0; i < 50; i++) {
		ranks_sleep();
		n = count_threads_that_stay(names);
		if (n < f->threads) {
			f->threads = n;
			memcpy(f->names, names, sizeof(names));
		}
	}
}

/*
 * NCCL allocates tens of megabytes while it makes a communicator, on a thread of its own, and frees
 * them. The C library raises its threshold for mmap() with the first such block that is freed,
 * takes the next ones from the arenas of the threads, and gives the top of no arena but the first
 * back: resident memory then grows by a peak for each arena, up to eight for each processor, and
 * nothing has leaked. Fixed thresholds have no such history.
 */
void footprint_prepare(void)
{
	CHECK(mallopt(M_MMAP_THRESHOLD, 128 * 1024));
	CHECK(mallopt(M_TRIM_THRESHOLD, 128 * 1024));
}

struct footprint footprint_take(void)
{
	struct footprint f;
	struct mallinfo2 heap;

	count_threads(&f);
	heap = mallinfo2();
	malloc_trim(0); /* what malloc keeps of freed memory is no leak */
	f.memory_kb = read_memory_kb();
	f.heap_kb = (long)((heap.uordblks + heap.hblkhd) / 1024);
	f.descriptors = count_entries("/proc/self/fd");
	f.mappings = count_mappings();
	return f;
}

struct footprint footprint_await(const struct footprint *early)
{
	char names[FOOTPRINT_NAMES];

	for (int i = 0; i < 30000; i++) {
		if (count_threads_that_stay(names) <= early->threads &&
		    count_entries("/proc/self/fd") <= early->descriptors)
			break;
		ranks_sleep();
	}
	return footprint_take();
}

void footprint_print(int rank, const char *when, const struct footprint *f)
{
	printf("rank %d, %s: %ld kB, %ld kB of malloc, %ld descriptors, %ld threads (%s), %ld "
	       "mappings\n",
	       rank, when, f->memory_kb, f->heap_kb, f->descriptors, f->threads, f->names,
	       f->mappings);
	fflush(stdout);
}
