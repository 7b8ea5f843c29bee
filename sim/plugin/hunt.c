/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/hunt.h"
#include "base/clamp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 64
/*
 * of processor time: whoever needs more loops without the virtual time moving; a busy machine is no
 * loop
 */
#define SEED_SECONDS 60
#define HANG_SECONDS 900 /* of real time: whoever needs more waits for a lock */
#define TWICE 64         /* one seed in so many is repeated */
#define SHOWN_MAX 5      /* findings that are shrunk and printed whole */

struct report {
	uint64_t seed;
	struct sim_result result;
};

struct job {
	pid_t pid;
	int fd;
	uint64_t next; /* seed that it starts with */
	uint64_t *at;  /* shared: the seed that it is at */
};

static void set_time_limits(void)
{
	struct itimerval loop = { .it_value.tv_sec = SEED_SECONDS };

	(void)setitimer(ITIMER_PROF, &loop, NULL);
	alarm(HANG_SECONDS);
}

static void clear_time_limits(void)
{
	(void)setitimer(ITIMER_PROF, &(struct itimerval) { 0 }, NULL);
	alarm(0);
}

static void record_crash(struct sim_result *result, int status)
{
	memset(result, 0, sizeof(*result));
	result->finding = SIM_CRASH;
	if (WIFSIGNALED(status))
		snprintf(result->text, sizeof(result->text), "ended by signal %d (%s)",
			 WTERMSIG(status),
			 WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGPROF
				 ? "it took too long"
				 : strsignal(WTERMSIG(status)));
	else
		snprintf(result->text, sizeof(result->text), "ended with status %d",
			 WEXITSTATUS(status));
}

static bool read_whole(int fd, void *to, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = read(fd, (char *)to + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += (size_t)n;
	}
	return true;
}

static void write_whole(int fd, const void *from, size_t size)
{
	for (size_t at = 0; at < size;) {
		ssize_t n = write(fd, (const char *)from + at, size - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(3);
		at += (size_t)n;
	}
}

void sim_run_apart(const struct sim_scenario *sc, enum sim_mutation mutation,
		   struct sim_result *result)
{
	int fd[2], status;
	pid_t pid;

	memset(result, 0, sizeof(*result));
	if (pipe(fd))
		return;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		set_time_limits();
		sim_world_run(sc, mutation, false, result);
		write_whole(fd[1], result, sizeof(*result));
		_exit(0);
	}
	close(fd[1]);
	if (pid > 0) {
		bool whole = read_whole(fd[0], result, sizeof(*result));

		waitpid(pid, &status, 0);
		if (!whole)
			record_crash(result, status);
	}
	close(fd[0]);
}

/* ---- shrinking ---- */

/* Does this smaller one show the same? Then it is the one to go on with. */
static bool try_smaller(struct sim_scenario *sc, const struct sim_scenario *smaller,
			enum sim_mutation mutation, struct sim_result *result)
{
	struct sim_result r;

	sim_run_apart(smaller, mutation, &r);
	if (r.finding != result->finding)
		return false;
	*sc = *smaller;
	*result = r;
	return true;
}

static bool fewer_faults(struct sim_scenario *sc, enum sim_mutation mutation,
			 struct sim_result *result)
{
	bool any = false;

	for (unsigned i = 0; i < sc->nfaults; i++) {
		struct sim_scenario s = *sc;

		s.fault[i].off = true;
		any |= !sc->fault[i].off && try_smaller(sc, &s, mutation, result);
	}
	return any;
}

static bool fewer_conns(struct sim_scenario *sc, enum sim_mutation mutation,
			struct sim_result *result)
{
	bool any = false;

	for (unsigned i = 0; i < sc->nconns && i < SIM_CONNS_MASKED; i++) {
		struct sim_scenario s = *sc;

		s.shrunk.conns_off |= UINT64_C(1) << i;
		any |= sim_conn_is_on(sc, i) && try_smaller(sc, &s, mutation, result);
	}
	return any;
}

static bool fewer_messages(struct sim_scenario *sc, enum sim_mutation mutation,
			   struct sim_result *result)
{
	uint32_t most = 0;
	bool any = false;

	for (unsigned i = 0; i < sc->nconns; i++)
		if (sim_conn_is_on(sc, i) && sc->conn[i].messages > most)
			most = sc->conn[i].messages;
	if (sc->shrunk.message_cap < most)
		most = sc->shrunk.message_cap;
	for (uint32_t cut = most / 2; cut; cut /= 2) {
		struct sim_scenario s = *sc;

		s.shrunk.message_cap = most - cut;
		if (try_smaller(sc, &s, mutation, result)) {
			most -= cut;
			any = true;
		}
	}
	return any;
}

/* Leaves out faults, connections and messages while the same is found. */
static void sim_shrink(struct sim_scenario *sc, enum sim_mutation mutation,
		       struct sim_result *result)
{
	for (int pass = 0; pass < 3; pass++) {
		bool any = fewer_faults(sc, mutation, result);

		any |= fewer_conns(sc, mutation, result);
		any |= fewer_messages(sc, mutation, result);
		if (!any)
			return;
	}
}

/* "ha sim --seed 5 --without-faults 0x3 ...": how to run exactly this again. */
static void sim_print_command(const struct sim_scenario *sc, const struct sim_hunt *hunt, FILE *out)
{
	uint32_t off = 0;

	for (unsigned i = 0; i < sc->nfaults; i++)
		off |= (uint32_t)sc->fault[i].off << i;
	fprintf(out, "  replay: ha sim --seed %llu -v", (unsigned long long)sc->seed);
	if (hunt->allowed)
		fprintf(out, " --fault-mask 0x%x", hunt->allowed);
	if (hunt->mutation)
		fprintf(out, " --mutate %s", sim_mutation_name(hunt->mutation, NULL));
	if (off)
		fprintf(out, " --without-faults 0x%x", off);
	if (sc->shrunk.conns_off)
		fprintf(out, " --without-connections 0x%llx",
			(unsigned long long)sc->shrunk.conns_off);
	if (sc->shrunk.message_cap != UINT32_MAX)
		fprintf(out, " --messages %u", sc->shrunk.message_cap);
	fprintf(out, "\n");
}

/* ---- many ---- */

/* The same seed once more: its trace must repeat. */
static void repeat_run(const struct sim_scenario *sc, enum sim_mutation mutation,
		       struct sim_result *result)
{
	struct sim_result again;

	sim_world_run(sc, mutation, false, &again);
	if (again.hash == result->hash)
		return;
	result->finding = SIM_UNSTEADY;
	snprintf(result->text, sizeof(result->text), "trace %016llx, then %016llx",
		 (unsigned long long)result->hash, (unsigned long long)again.hash);
}

static void run_seed(const struct sim_hunt *hunt, uint64_t seed, struct sim_result *result)
{
	struct sim_scenario sc;

	sim_scenario_make(&sc, seed, hunt->allowed);
	sim_world_run(&sc, hunt->mutation, false, result);
	if (seed % TWICE == 0 && !result->finding)
		repeat_run(&sc, hunt->mutation, result);
}

static _Noreturn void run_job(const struct sim_hunt *hunt, const struct job *job, int fd)
{
	for (uint64_t seed = job->next; seed < hunt->start + hunt->count; seed += hunt->jobs) {
		struct report report = { .seed = seed };

		*job->at = seed;
		set_time_limits();
		run_seed(hunt, seed, &report.result);
		write_whole(fd, &report, sizeof(report));
	}
	clear_time_limits();
	exit(0); /* in good order: a sanitizer looks for leaks */
}

static int job_start(const struct sim_hunt *hunt, struct job *job)
{
	int fd[2];

	if (pipe(fd))
		return -errno;
	fflush(NULL);
	job->pid = fork();
	if (job->pid == 0) {
		close(fd[0]);
		run_job(hunt, job, fd[1]);
	}
	close(fd[1]);
	job->fd = fd[0];
	return job->pid < 0 ? -errno : 0;
}

static void show_finding(const struct sim_hunt *hunt, struct report *report, FILE *out)
{
	struct sim_scenario sc;

	sim_scenario_make(&sc, report->seed, hunt->allowed);
	/* One that takes too long would take as long for every try. */
	if (hunt->shrink && !strstr(report->result.text, "too long"))
		sim_shrink(&sc, hunt->mutation, &report->result);
	fprintf(out, "seed %llu: %s after %.3f ms: %s\n", (unsigned long long)report->seed,
		sim_finding_name(report->result.finding), (double)report->result.at / 1e6,
		report->result.text);
	sim_scenario_print(&sc, out);
	sim_print_command(&sc, hunt, out);
	fflush(out);
}

static void count_report(const struct sim_hunt *hunt, struct report *report,
			 struct sim_tally *tally, FILE *out)
{
	const struct sim_result *r = &report->result;

	tally->seeds++;
	tally->messages += r->messages;
	tally->bytes += r->bytes;
	tally->packets += r->packets;
	tally->errors += r->errors;
	tally->ns += r->ns;
	tally->failovers += r->failovers;
	tally->recoveries += r->recoveries;
	tally->by_finding[r->finding]++;
	if (!r->finding)
		return;
	if (tally->findings++ < SHOWN_MAX && !hunt->quiet)
		show_finding(hunt, report, out);
	else if (!hunt->quiet)
		fprintf(out, "seed %llu: %s: %s\n", (unsigned long long)report->seed,
			sim_finding_name(r->finding), r->text);
}

/* A report, or the end of a job. False: the job is over. */
static bool read_report(const struct sim_hunt *hunt, struct job *job, struct sim_tally *tally,
			FILE *out)
{
	struct report report;
	int status;

	if (read_whole(job->fd, &report, sizeof(report))) {
		count_report(hunt, &report, tally, out);
		return true;
	}
	close(job->fd);
	waitpid(job->pid, &status, 0);
	job->pid = 0;
	if (!status)
		return false;
	/* It died over a seed: that is a finding, and another one goes on behind it. */
	report.seed = *job->at;
	record_crash(&report.result, status);
	count_report(hunt, &report, tally, out);
	job->next = report.seed + hunt->jobs;
	return job_start(hunt, job) == 0;
}

/* Starts all jobs; *live gets how many run. */
static int jobs_start(struct sim_hunt *h, struct job *jobs, struct pollfd *fds, uint64_t *at,
		      unsigned *live)
{
	int err = 0;

	for (unsigned j = 0; j < h->jobs && !err; j++) {
		jobs[j].next = h->start + j;
		jobs[j].at = &at[j];
		err = job_start(h, &jobs[j]);
		fds[j] = (struct pollfd) { jobs[j].fd, POLLIN, 0 };
		*live += !err;
	}
	return err;
}

/* Waits for what any job has to say. */
static int jobs_await(struct sim_hunt *h, struct job *jobs, struct pollfd *fds,
		      struct sim_tally *tally, FILE *out, unsigned *live)
{
	if (poll(fds, h->jobs, -1) < 0 && errno != EINTR)
		return -errno;
	for (unsigned j = 0; j < h->jobs; j++) {
		if (!fds[j].revents)
			continue;
		if (!read_report(h, &jobs[j], tally, out)) {
			--*live;
			jobs[j].fd = -1;
		}
		fds[j].fd = jobs[j].fd;
	}
	return 0;
}

static void jobs_end(struct sim_hunt *h, struct job *jobs)
{
	for (unsigned j = 0; j < h->jobs; j++) {
		if (jobs[j].pid > 0 && h->first) {
			kill(jobs[j].pid, SIGKILL);
			close(jobs[j].fd);
			waitpid(jobs[j].pid, NULL, 0);
		}
	}
}

int sim_hunt_run(const struct sim_hunt *hunt, struct sim_tally *tally, FILE *out)
{
	struct sim_hunt h = *hunt;
	struct job jobs[JOBS_MAX] = { 0 };
	struct pollfd fds[JOBS_MAX];
	unsigned live = 0;
	uint64_t *at;
	int err;

	memset(tally, 0, sizeof(*tally));
	h.jobs = (unsigned)ha_clamp(h.jobs, 1, JOBS_MAX);
	at = mmap(NULL, JOBS_MAX * sizeof(*at), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		  -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	err = jobs_start(&h, jobs, fds, at, &live);
	while (live && !err && !(h.first && tally->findings))
		err = jobs_await(&h, jobs, fds, tally, out, &live);
	jobs_end(&h, jobs);
	munmap(at, JOBS_MAX * sizeof(*at));
	return err;
}
