/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/job.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "tools/job/self.h"
#include "tools/soft_job.h"
#include "tools/status_read.h"

#define END_MS 60000 /* what a job may take to end in order */

/* ---- one of our own ---- */

static void become_job(const struct job *job, const struct drill_options *o, pid_t parent)
{
	char folder[PATH_MAX], path[PATH_MAX + 8], ranks[16], json[96];
	const char *operation = o->program == DRILL_NCCL ? "all_reduce" : "allreduce";
	int output = open(job->output, O_WRONLY);

	setpgid(0, 0); /* the terminal's ^C is the drill's: it ends the job itself */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	if (o->software)
		setenv("HA_NCCL_VERBS", "soft", 1);
	snprintf(path, sizeof(path), "%s/ha", ha_self_folder(folder, sizeof(folder)));
	snprintf(ranks, sizeof(ranks), "%d", o->ranks);
	snprintf(json, sizeof(json), "--json=%s", job->report);
	execl(path, path, o->program == DRILL_NCCL ? "nccl" : "perf", operation, "--ranks", ranks,
	      "-b", o->size, "-e", o->size, "--duration", "86400s", json, (char *)NULL);
	fprintf(stderr, "ha drill: cannot run %s: %s\n", path, strerror(errno));
	_exit(127);
}

static int make_file(char *path, size_t size, const char *what)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	if (snprintf(path, size, "%s/ha-drill-%s.XXXXXX", folder ? folder : "/tmp", what) >=
	    (int)size)
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		*path = 0;
		return -errno;
	}
	close(fd);
	return 0;
}

static void remove_files(struct job *job)
{
	if (*job->report)
		unlink(job->report);
	if (*job->output)
		unlink(job->output);
	*job->report = *job->output = 0;
}

int job_start(struct job *job, const struct drill_options *o)
{
	const char *program = o->program == DRILL_NCCL ? "nccl" : "perf";
	pid_t parent = getpid();
	int err;

	*job = (struct job) { .own = true };
	snprintf(job->name, sizeof(job->name), "ha %s, all-reduce of %s, %d ranks", program,
		 o->size, o->ranks);
	err = make_file(job->report, sizeof(job->report), "report");
	if (!err)
		err = make_file(job->output, sizeof(job->output), "output");
	if (!err) {
		job->pid = fork();
		if (!job->pid)
			become_job(job, o, parent);
		err = job->pid < 0 ? -errno : 0;
	}
	if (err) {
		fprintf(stderr, "ha drill: cannot start the job: %s\n", strerror(-err));
		remove_files(job);
	}
	return err;
}

/* ---- one that runs ---- */

/* The newest process of the user with a page; its number, 0: none. */
static pid_t find_newest(const struct ha_status_found *found, size_t n)
{
	uint64_t latest = 0;
	pid_t newest = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ha_status_header *h = found[i].page ? &found[i].page->header : NULL;

		if (!h || found[i].ended || found[i].foreign || h->start_ticks < latest)
			continue;
		latest = h->start_ticks;
		newest = (pid_t)h->pid;
	}
	return newest;
}

static bool has_process(const struct ha_status_found *found, size_t n, pid_t job, char *program,
			size_t size)
{
	for (size_t i = 0; i < n; i++) {
		const struct ha_status_header *h = found[i].page ? &found[i].page->header : NULL;

		if (!h || found[i].ended || ha_soft_job_of((pid_t)h->pid) != job)
			continue;
		snprintf(program, size, "%s", h->program);
		return true;
	}
	return false;
}

int job_find(struct job *job, const struct drill_options *o, const char *dir)
{
	struct ha_status_found *found;
	char program[64] = "";
	pid_t process;
	size_t n;
	int err = ha_status_scan(dir, &found, &n);

	*job = (struct job) { 0 };
	if (err) {
		fprintf(stderr, "ha drill: %s: %s\n", dir, strerror(-err));
		return err;
	}
	process = o->job ? (pid_t)o->job : find_newest(found, n);
	if (process && has_process(found, n, process, program, sizeof(program)))
		job->pid = process;
	else if (process)
		job->pid = ha_soft_job_of(process);
	if (!job->pid || !has_process(found, n, job->pid, program, sizeof(program)))
		job->pid = 0;
	ha_status_scan_free(found, n);
	if (!job->pid) {
		fprintf(stderr, "ha drill: no such job of this user has hawser open on this host; "
				"`ha status` lists what has\n");
		return -ESRCH;
	}
	snprintf(job->name, sizeof(job->name), "%s, started by process %d", program, (int)job->pid);
	return 0;
}

/* ---- both ---- */

bool job_runs(struct job *job)
{
	siginfo_t info = { 0 };

	if (!job->own)
		return ha_process_start(job->pid) != 0;
	return !waitid(P_PID, (id_t)job->pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

static void read_report(const struct job *job, struct job_verdict *v)
{
	json_t *report = json_load_file(job->report, 0, NULL), *results, *row;
	size_t i;

	v->known = report != NULL;
	v->wrong = json_integer_value(json_object_get(report, "wrong"));
	results = json_object_get(report, "results");
	json_array_foreach(results, i, row) v->iterations +=
		json_integer_value(json_object_get(row, "iters"));
	json_decref(report);
}

static void read_output(const struct job *job, struct job_verdict *v)
{
	FILE *file = fopen(job->output, "re");
	char line[256];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, "ha ", 3))
			snprintf(v->said, sizeof(v->said), "%.*s", (int)strcspn(line, "\n"), line);
	if (file)
		fclose(file);
}

/* Of our own: its status once it has ended; false: it has not within the time. */
static bool await_end(struct job *job, int *status)
{
	for (int i = 0; i < END_MS / 10; i++) {
		if (waitpid(job->pid, status, WNOHANG) == job->pid)
			return true;
		usleep(10000);
	}
	return false;
}

void job_end(struct job *job, struct job_verdict *v)
{
	*v = (struct job_verdict) { 0 };
	if (!job->own || job->reaped)
		return;
	kill(-job->pid, SIGINT); /* its first rank ends the measurement, the others follow */
	if (!await_end(job, &v->status)) {
		kill(-job->pid, SIGKILL);
		waitpid(job->pid, &v->status, 0);
	}
	job->reaped = true;
	read_report(job, v);
	if (v->status)
		read_output(job, v);
	remove_files(job);
}
