/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_step.c - bench-step counts the instructions of one object exactly, and nothing else
 *
 * test_step BENCH_STEP OBJECT; with one argument it is the program that is counted, of that name.
 */
#include "base/check.h"
#include "tests/plugin/nccl/step.h"
#include "tests/plugin/nccl/step_object.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIMES 100
#define SIGNALS 20
#define SECTIONS 8
#define MUCH 10000000 /* instructions at least; stepping through them takes minutes */
#define EXIT_STATUS 7
#define SKIP 77

static atomic_int alarms;
static atomic_bool over;

static void on_alarm(int sig)
{
	(void)sig;
	atomic_fetch_add(&alarms, 1);
}

static void *run_beside(void *unused)
{
	(void)unused;
	while (!atomic_load(&over))
		step_object_loop();
	return NULL;
}

static void count_calls(void)
{
	char to[STEP_OBJECT_REPEATED];

	step_object_loop();
	step_mark(STEP_TOGGLE);
	for (int i = 0; i < TIMES; i++)
		step_object_loop();
	step_mark(STEP_TOGGLE);
	step_mark(STEP_DUMP);
	step_mark(STEP_TOGGLE);
	for (int i = 0; i < TIMES; i++)
		step_object_repeat(to);
	step_mark(STEP_TOGGLE);
	step_object_loop();
	step_mark(STEP_DUMP);
	step_mark(STEP_TOGGLE);
	for (int i = 0; i < TIMES; i++)
		step_object_call();
	step_mark(STEP_TOGGLE);
	step_mark(STEP_DUMP);
}

static void work_much(void)
{
	for (volatile int i = 0; i < MUCH; i++)
		;
}

static void call_back(void)
{
	static int calls;

	if (++calls == 3) {
		calls = 0;
		return;
	}
	step_object_loop();
	step_object_away(call_back); /* returns to the same place, lower on the stack */
}

static void work_little(void)
{
	getppid();
}

static void count_calls_away(void)
{
	step_mark(STEP_TOGGLE);
	for (int i = 0; i < TIMES; i++)
		step_object_away(i ? call_back : work_much);
	step_mark(STEP_TOGGLE);
	step_mark(STEP_DUMP);
	step_mark(STEP_TOGGLE);
	for (int i = 0; i < TIMES; i++)
		step_object_jump(work_little);
	step_mark(STEP_TOGGLE);
	step_mark(STEP_DUMP);
}

/* A thread beside, a child, and the vdso, while it is counted. */
static void count_in_company(void)
{
	pthread_t beside;
	pid_t child;
	int status;

	CHECK(!pthread_create(&beside, NULL, run_beside, NULL));
	step_mark(STEP_TOGGLE);
	child = fork();
	if (!child) {
		for (int i = 0; i < TIMES; i++)
			step_object_loop();
		_exit(EXIT_STATUS);
	}
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == EXIT_STATUS);
	for (int i = 0; i < TIMES; i++) {
		struct timespec now;

		CHECK(!clock_gettime(CLOCK_MONOTONIC, &now));
		step_object_loop();
	}
	step_mark(STEP_TOGGLE);
	atomic_store(&over, true);
	pthread_join(beside, NULL);
	step_mark(STEP_DUMP);
}

/* So often; each signal comes somewhere in the object, or between its calls. Prints how many calls
 * that took. */
static void count_beside_signals(void)
{
	static const struct itimerval once = { .it_value = { 0, 300 } };
	unsigned calls = 0;

	signal(SIGALRM, on_alarm);
	step_mark(STEP_TOGGLE);
	for (int i = 0; i < SIGNALS; i++) {
		setitimer(ITIMER_REAL, &once, NULL);
		do {
			step_object_loop();
			calls++;
		} while (atomic_load(&alarms) == i);
	}
	step_mark(STEP_TOGGLE);
	step_mark(STEP_DUMP);
	printf("%u\n", calls);
	fflush(stdout);
}

/* Stopped, and continued by a child, which goes on to continue it: each SIGCONT is a stop that only
 * the tracer sees, often between an instruction and its trap. */
static void count_across_stops(void)
{
	atomic_bool *over_there = mmap(NULL, sizeof(*over_there), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child = fork();

	CHECK(over_there != MAP_FAILED && child >= 0);
	if (!child) {
		while (!atomic_load(over_there)) {
			kill(getppid(), SIGCONT);
			usleep(1);
		}
		_exit(0);
	}
	step_mark(STEP_TOGGLE);
	raise(SIGSTOP);
	for (int i = 0; i < TIMES; i++)
		step_object_call();
	step_mark(STEP_TOGGLE);
	atomic_store(over_there, true);
	CHECK(waitpid(child, NULL, 0) == child);
	step_mark(STEP_DUMP);
}

static int run_program(const char *what)
{
	if (!strcmp(what, "killed"))
		raise(SIGKILL);
	if (strcmp(what, "count"))
		return EXIT_STATUS;
	count_calls();
	count_calls_away();
	count_in_company();
	count_beside_signals();
	count_across_stops();
	return EXIT_STATUS;
}

struct result {
	int status;
	unsigned long count[SECTIONS];
	unsigned long calls; /* beside signals */
	char said[256];      /* on stderr */
};

static void read_all(const char *name, char *text, size_t size)
{
	FILE *f = fopen(name, "re");

	CHECK(f);
	text[fread(text, 1, size - 1, f)] = 0;
	fclose(f);
}

static char folder[] = "/tmp/test_step.XXXXXX";

static void name_file(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", folder, name);
}

static void read_result(struct result *r)
{
	char path[64], text[1024], *at = text, *end;

	name_file(path, sizeof(path), "counts");
	read_all(path, text, sizeof(text));
	for (int i = 0; i < SECTIONS; i++, at = end)
		r->count[i] = strtoul(at, &end, 10);
	name_file(path, sizeof(path), "calls");
	read_all(path, text, sizeof(text));
	r->calls = strtoul(text, NULL, 10);
	name_file(path, sizeof(path), "said");
	read_all(path, r->said, sizeof(r->said));
}

static struct result run_stepped(const char *step, const char *object, const char *program,
				 const char *what)
{
	struct result r = { 0 };
	char counts[64], calls[64], said[64];
	pid_t pid;
	int status;

	name_file(counts, sizeof(counts), "counts");
	name_file(calls, sizeof(calls), "calls");
	name_file(said, sizeof(said), "said");
	fclose(fopen(counts, "we"));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(freopen(calls, "w", stdout) && freopen(said, "w", stderr));
		execl(step, step, counts, object, program, what, NULL);
		_exit(126);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	r.status = WEXITSTATUS(status);
	read_result(&r);
	return r;
}

static void check_counts(const struct result *r)
{
	const unsigned long expected[SECTIONS] = {
		TIMES * STEP_OBJECT_LOOP,    TIMES * STEP_OBJECT_REPEAT, TIMES * STEP_OBJECT_CALL,
		TIMES * STEP_OBJECT_AWAY,    TIMES * STEP_OBJECT_JUMP,   TIMES * STEP_OBJECT_LOOP,
		r->calls * STEP_OBJECT_LOOP, TIMES * STEP_OBJECT_CALL,
	};

	CHECK_INT(r->status, EXIT_STATUS);
	CHECK_TEXT(r->said, "");
	CHECK(r->calls >= SIGNALS);
	for (unsigned i = 0; i < SECTIONS; i++)
		CHECK_THAT(r->count[i] == expected[i], "section %u is %lu, expected %lu", i,
			   r->count[i], expected[i]);
}

static void check_refusals(const char *step, const char *object, const char *self)
{
	struct result r = run_stepped(step, step, self, "count");

	CHECK_INT(r.status, 1);
	CHECK_THAT(strstr(r.said, "is not mapped in process"), "it said: %s", r.said);
	r = run_stepped(step, "/nowhere/object.so", self, "count");
	CHECK_INT(r.status, 1);
	CHECK_TEXT(r.said, "bench-step: /nowhere/object.so: No such file or directory\n");
	r = run_stepped(step, object, "/nowhere/program", "count");
	CHECK_INT(r.status, 127);
	CHECK_TEXT(r.said, "bench-step: /nowhere/program: No such file or directory\n");
	CHECK_INT(run_stepped(step, object, self, "killed").status, 128 + SIGKILL);
	CHECK_INT(run_stepped(step, object, self, "nothing").status, EXIT_STATUS);
}

int main(int argc, char **argv)
{
	char path[64];
	struct result r;

	if (argc == 2)
		return run_program(argv[1]);
	CHECK_THAT(argc == 3, "usage: %s BENCH_STEP OBJECT", argv[0]);
	CHECK(mkdtemp(folder));
	r = run_stepped(argv[1], argv[2], argv[0], "count");
	if (r.status == SKIP) {
		fputs(r.said, stdout);
	} else {
		check_counts(&r);
		check_refusals(argv[1], argv[2], argv[0]);
	}
	for (const char *const *name = (const char *const[]) { "counts", "calls", "said", NULL };
	     *name; name++) {
		name_file(path, sizeof(path), *name);
		unlink(path);
	}
	rmdir(folder);
	return r.status == SKIP ? SKIP : 0;
}
