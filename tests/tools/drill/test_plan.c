/* SPDX-License-Identifier: BSD-3-Clause */
/* What a drill finds in the pages of many processes, and takes away of it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/process.h"
#include "tools/drill/drill.h"

#define PROCESSES 100

static struct drill_run run;
static char folder[] = "/tmp/ha-test-plan-XXXXXX";
static pid_t children[PROCESSES];

static void page_path(char *path, size_t size, pid_t pid, int number)
{
	snprintf(path, size, "%s/%d-%d", folder, (int)pid, number);
}

/* A page of the process with two NICs. */
static void write_page(pid_t pid, int number)
{
	static struct ha_status_page page;
	char path[96];
	int fd;

	page = (struct ha_status_page) { .header = { .magic = HA_STATUS_MAGIC,
						     .version = HA_STATUS_VERSION,
						     .size = sizeof(page),
						     .pid = (uint32_t)pid,
						     .pid_space = ha_process_space(),
						     .start_ticks = ha_process_start(pid) } };
	for (int i = 0; i < 2; i++) {
		page.device[i].seq = 2;
		snprintf(page.device[i].name, sizeof(page.device[i].name), "soft%d:1", i);
	}
	page_path(path, sizeof(path), pid, number);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	CHECK(fd >= 0);
	CHECK_INT(write(fd, &page, sizeof(page)), sizeof(page));
	close(fd);
}

static void remove_page(pid_t pid, int number)
{
	char path[96];

	page_path(path, sizeof(path), pid, number);
	CHECK(!unlink(path));
}

static void start_children(void)
{
	for (int i = 0; i < PROCESSES; i++) {
		children[i] = fork();
		CHECK(children[i] >= 0);
		if (children[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

/* Plans the drills of the job whose processes are the children that have pages. */
static void plan_job(const struct drill_options *options)
{
	struct watch *w = &run.watch;

	run = (struct drill_run) { .options = options };
	watch_open(w, folder, "/nowhere", getpid());
	CHECK(!watch_look(w));
	for (unsigned i = 0; i < w->devices; i++)
		w->device[i].soft = true; /* they have no control pages */
	CHECK(!drill_plan(&run));
}

static void check_rail(const struct drill *d, unsigned processes)
{
	CHECK_INT(d->fault.kind, FAULT_CUT);
	CHECK_INT(d->fault.places, processes);
	for (unsigned i = 0; i < processes; i++)
		for (unsigned k = 0; k < i; k++)
			CHECK(d->fault.place[i].pid != d->fault.place[k].pid);
}

/* A rail's NICs are all cut, of however many processes. */
static void test_rail_of_many_processes(void)
{
	const struct drill_options options = { .cut = true, .rails = true };

	for (int i = 0; i < PROCESSES; i++)
		write_page(children[i], 1);
	plan_job(&options);
	CHECK_INT(run.count, 4);
	check_rail(&run.drills[2], PROCESSES);
	check_rail(&run.drills[3], PROCESSES);
	watch_close(&run.watch);
	for (int i = 0; i < PROCESSES; i++)
		remove_page(children[i], 1);
}

/* A NIC that is on two pages of its process is one NIC. */
static void test_nic_on_two_pages(void)
{
	const struct drill_options options = { .cut = true, .rails = true };

	for (int i = 0; i < 2; i++)
		for (int number = 1; number <= 2; number++)
			write_page(children[i], number);
	plan_job(&options);
	CHECK_INT(run.count, 4);
	CHECK_INT(run.drills[0].fault.places, 1);
	check_rail(&run.drills[2], 2);
	watch_close(&run.watch);
	for (int i = 0; i < 2; i++)
		for (int number = 1; number <= 2; number++)
			remove_page(children[i], number);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	start_children();
	test_rail_of_many_processes();
	test_nic_on_two_pages();
	CHECK(!rmdir(folder));
	for (int i = 0; i < PROCESSES; i++)
		kill(children[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	return 0;
}
