/* SPDX-License-Identifier: BSD-3-Clause */
/* The watcher over pages that are made here: of processes that cannot be seen. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/process.h"
#include "tests/base/folder.h"
#include "tools/exporter/watcher.h"

#define LOOK_NS HA_NS_PER_S
#define SILENT_NS (180 * HA_NS_PER_S)
#define DESCRIPTORS 400 /* with which one user may have some 130 pages */

static char dir[] = "/tmp/ha-watcher.XXXXXX";
static char pattern[64];
static struct watcher w;
static uint64_t now = 1000 * HA_NS_PER_S;

static bool no_memory; /* for anything large */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory && size > sizeof(struct ha_status_page) ? NULL : __real_malloc(size);
}

static void path_of(char path[128], unsigned uid, const char *name)
{
	snprintf(path, 128, "%s/pages-%u", dir, uid);
	CHECK(!mkdir(path, 0700) || errno == EEXIST);
	if (!geteuid())
		CHECK_INT(chown(path, uid, uid), 0);
	snprintf(path, 128, "%s/pages-%u/%s", dir, uid, name);
}

static void write_page(unsigned uid, const char *name, const struct ha_status_page *page)
{
	char path[128];
	int fd;

	path_of(path, uid, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	CHECK_INT(pwrite(fd, page, sizeof(*page), 0), sizeof(*page));
	close(fd);
}

/* A page of this process, or of one in a pid namespace that nobody here is in. */
static struct ha_status_page *make_page(uint64_t space)
{
	struct ha_status_page *page = calloc(1, sizeof(*page));

	page->header = (struct ha_status_header) { .magic = HA_STATUS_MAGIC,
						   .version = HA_STATUS_VERSION,
						   .size = sizeof(*page),
						   .pid = (uint32_t)getpid(),
						   .pid_space = space,
						   .start_ticks = ha_process_start(getpid()),
						   .program = "test" };
	page->totals.seq = 2;
	page->totals.updated_mono = now;
	return page;
}

static void look(uint64_t ns)
{
	now += ns;
	watcher_look(&w, now);
}

static unsigned count_running(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w.processes; i++)
		n += watcher_runs(w.process[i]);
	return n;
}

static unsigned count_running_of(uid_t uid)
{
	unsigned n = 0;

	for (unsigned i = 0; i < w.processes; i++)
		n += watcher_runs(w.process[i]) && w.process[i]->uid == uid;
	return n;
}

static double count_of(enum counter_family family)
{
	double sum = 0;

	for (size_t i = 0; i < w.counters.n; i++)
		sum += w.counters.list[i].family == family ? w.counters.list[i].value : 0;
	return sum;
}

/* So that each test begins with nothing. */
static void prepare_watcher(void)
{
	watcher_close(&w);
	folder_remove(dir);
	CHECK_INT(mkdir(dir, 0755), 0);
	watcher_open(&w, pattern);
}

/* A process that cannot be seen counts as long as its page does not say the contrary: it writes at
 * least once a minute, and goes on to count when it was only stopped. */
static void unseen_process(void)
{
	struct ha_status_page *page = make_page(0);

	prepare_watcher();
	write_page(0, "7", page);
	look(LOOK_NS);
	CHECK_INT(count_running(), 1);
	look(SILENT_NS - 2 * LOOK_NS);
	CHECK_INT(count_running(), 1);
	look(2 * LOOK_NS);
	CHECK_INT(count_running(), 0);
	page->totals.updated_mono = now;
	write_page(0, "7", page);
	look(LOOK_NS);
	CHECK_INT(count_running(), 1);
	free(page);
}

/* One that can be seen counts for as long as it is there: it may be stopped, or idle. */
static void seen_process(void)
{
	struct ha_status_page *page = make_page(ha_process_space());

	prepare_watcher();
	write_page(0, "7", page);
	look(LOOK_NS);
	look(10 * SILENT_NS);
	CHECK_INT(count_running(), 1);
	free(page);
}

/* A page whose process has ended takes no place, and is not counted again. */
static void ended_process(void)
{
	struct ha_status_page *page = make_page(ha_process_space());
	char path[128];

	prepare_watcher();
	page->header.start_ticks++;
	write_page(0, "7", page);
	for (int i = 0; i < 4; i++)
		look(LOOK_NS);
	CHECK_INT(w.processes, 0);
	CHECK_INT(w.lefts, 1);
	CHECK_INT(count_of(COUNTER_PROCESSES), 1);
	path_of(path, 0, "7");
	CHECK_INT(unlink(path), 0);
	look(LOOK_NS);
	CHECK_INT(w.lefts, 0);
	free(page);
}

/* What a page says of itself is not believed when it comes to whose environment is read. */
static void others_environment(void)
{
	struct ha_status_page *page = make_page(ha_process_space());

	prepare_watcher();
	write_page(65533, "7", page);
	look(LOOK_NS);
	CHECK_INT(count_running(), 1);
	CHECK_TEXT(w.process[0]->job, geteuid() ? "4711" : "test");
	write_page(geteuid(), "8", page);
	look(LOOK_NS);
	CHECK_TEXT(w.process[1]->job, "4711");
	free(page);
}

static void put_event(struct ha_status_page *page, uint64_t number)
{
	page->event[number % HA_STATUS_EVENTS] = (struct ha_status_event) {
		.seq = 2, .kind = HA_EVENT_PROTECTED, .number = number, .rail = -1
	};
	page->totals.next_event = number + 1;
}

/* An event whose place was read before it was there, and the next one's afterwards: it is counted
 * when it is seen. The page has n events before, from number `first` on. */
static void early_read(uint64_t first, unsigned n)
{
	struct ha_status_page *page = make_page(ha_process_space());

	prepare_watcher();
	for (unsigned i = 0; i < n; i++)
		put_event(page, first + i);
	write_page(0, "7", page);
	look(LOOK_NS);
	put_event(page, first + n + 1);
	write_page(0, "7", page);
	look(LOOK_NS);
	put_event(page, first + n);
	write_page(0, "7", page);
	look(LOOK_NS);
	look(LOOK_NS);
	CHECK_INT(count_of(COUNTER_EVENTS), n + 2);
	CHECK_INT(count_of(COUNTER_MISSED), first);
	free(page);
}

/* Events that have been overwritten before anybody looked are missed; so is one that is torn, once
 * its process has ended. */
static void missed_events(void)
{
	struct ha_status_page *page = make_page(ha_process_space());

	prepare_watcher();
	put_event(page, 0);
	write_page(0, "7", page);
	look(LOOK_NS);
	for (uint64_t i = 3; i < 3 + HA_STATUS_EVENTS; i++)
		put_event(page, i);
	write_page(0, "7", page);
	look(LOOK_NS);
	CHECK_INT(count_of(COUNTER_EVENTS), 1 + HA_STATUS_EVENTS);
	CHECK_INT(count_of(COUNTER_MISSED), 2);
	put_event(page, 1000); /* nothing that is older is still there, or ever will be */
	for (uint64_t i = 1; i < HA_STATUS_EVENTS; i++)
		page->event[(1000 + i) % HA_STATUS_EVENTS].seq = 1;
	write_page(0, "7", page);
	look(LOOK_NS);
	CHECK_INT(count_of(COUNTER_EVENTS), 1 + HA_STATUS_EVENTS);
	page->header.start_ticks++;
	write_page(0, "7", page);
	look(LOOK_NS);
	look(LOOK_NS);
	CHECK_INT(count_of(COUNTER_EVENTS), 2 + HA_STATUS_EVENTS);
	CHECK_INT(count_of(COUNTER_MISSED), 1000 - 1 - HA_STATUS_EVENTS);
	free(page);
}

/* A look without memory: nothing is counted, nobody is given up, and what the gauges say stays. */
static void short_of_memory(void)
{
	struct ha_status_page *page = make_page(ha_process_space());

	prepare_watcher();
	put_event(page, 0);
	page->totals.connections = 1;
	write_page(0, "7", page);
	look(LOOK_NS);
	no_memory = true;
	look(LOOK_NS);
	no_memory = false;
	CHECK_INT(count_running(), 1);
	CHECK_INT(w.refused, 0);
	CHECK_INT(w.process[0]->page.totals.connections, 1);
	look(LOOK_NS);
	CHECK_INT(count_of(COUNTER_PROCESSES), 1);
	CHECK_INT(count_of(COUNTER_EVENTS), 1);
	free(page);
}

/* One that has ended, removed its page and cannot be read at once is counted to its end. */
static void short_of_memory_at_the_end(void)
{
	struct ha_status_page *page = make_page(ha_process_space());
	char path[128];

	prepare_watcher();
	page->header.start_ticks++;
	put_event(page, 0);
	write_page(0, "7", page);
	look(LOOK_NS);
	put_event(page, 1);
	write_page(0, "7", page);
	path_of(path, 0, "7");
	CHECK_INT(unlink(path), 0);
	no_memory = true;
	look(LOOK_NS);
	no_memory = false;
	look(LOOK_NS);
	CHECK_INT(count_of(COUNTER_EVENTS), 2);
	CHECK_INT(w.processes, 0);
	free(page);
}

/* A file with so much of a page in it, the rest being zero. */
static void write_start(unsigned uid, unsigned number, const struct ha_status_page *page,
			size_t size)
{
	char path[128], name[16];
	int fd;

	snprintf(name, sizeof(name), "%u", number);
	path_of(path, uid, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	CHECK(fd >= 0);
	CHECK_INT(pwrite(fd, page, size, 0), size);
	CHECK_INT(ftruncate(fd, size ? sizeof(*page) : 0), 0);
	close(fd);
}

/* However many files one user makes: another one's page is counted. What finds no room is said. */
static void others_files(unsigned files, size_t size)
{
	struct ha_status_page *page = make_page(ha_process_space());

	prepare_watcher();
	for (unsigned i = 1; i <= files; i++)
		write_start(65533, i, page, size);
	look(LOOK_NS);
	look(LOOK_NS);
	write_page(65532, "1", page);
	look(LOOK_NS);
	CHECK_INT(count_running_of(65532), 1);
	if (size == sizeof(struct ha_status_header))
		CHECK_INT(w.unplaced, files - count_running_of(65533));
	free(page);
}

int main(int argc, char **argv)
{
	const struct rlimit few = { DESCRIPTORS, DESCRIPTORS };

	/* The kernel shows a process's environment as it was when it began. */
	if (!getenv("SLURM_JOB_ID")) {
		setenv("SLURM_JOB_ID", "4711", 1);
		execv("/proc/self/exe", argv);
	}
	CHECK(mkdtemp(dir));
	snprintf(pattern, sizeof(pattern), "%s/pages-%%u", dir);
	unseen_process();
	seen_process();
	ended_process();
	others_environment();
	early_read(0, 6);
	early_read(1000, HA_STATUS_EVENTS);
	missed_events();
	short_of_memory();
	short_of_memory_at_the_end();
	if (!geteuid()) { /* who may give files away */
		others_files(1100, 0);
		CHECK_INT(setrlimit(RLIMIT_NOFILE, &few), 0);
		others_files(300, sizeof(uint32_t)); /* no page */
		others_files(300, sizeof(struct ha_status_header));
	}
	watcher_close(&w);
	folder_remove(dir);
	return 0;
}
