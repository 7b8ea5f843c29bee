/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step.c - runs a program and counts, step by step, the instructions of one of its objects
 *
 * For instructions-per-message, where callgrind is too slow: the program runs at its own speed
 * until it asks for counting (step.h), and its other threads and its children always do, since only
 * its first thread is traced. Each dump is a line of OUT: the count since the one before.
 *
 * A step counts when the instruction pointer was in an executable mapping of OBJECT before it, and
 * the instruction has been executed, which it has not where a signal came first. A system call is
 * one step; the kernel's vdso and vsyscall pages are no object's. An instruction with a rep prefix
 * is a step for each time round, as it is for callgrind.
 *
 * What the object calls elsewhere runs at its own speed up to a hardware breakpoint at the return
 * address; what calls back into the object from there is not counted. Without such breakpoints it
 * is stepped through, which takes long.
 */
#include "tests/plugin/nccl/step.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIP 77
#define RANGES_MAX 8

struct range {
	uintptr_t from, to;
};

struct tracer {
	pid_t pid;
	FILE *out;
	const char *object;
	struct range range[RANGES_MAX]; /* executable, of the object; found when counting begins */
	unsigned ranges;
	bool stepping;
	bool inside;     /* the step under way is in the object */
	uintptr_t last;  /* where it began */
	bool away;       /* the object has called another, which runs until it returns */
	uintptr_t stack; /* and has its return address here */
	uintptr_t return_to;
	unsigned long count;
};

__attribute__((format(printf, 2, 3), noreturn)) static void fail(int status, const char *format,
								 ...)
{
	va_list args;

	fprintf(stderr, "bench-step: ");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	exit(status); /* the program goes with its tracer */
}

#ifdef __x86_64__
#define INSTRUCTION_POINTER offsetof(struct user, regs.rip)
#define STACK_POINTER offsetof(struct user, regs.rsp)
#define BREAKPOINT_AT offsetof(struct user, u_debugreg[0])
#define BREAKPOINT_ON offsetof(struct user, u_debugreg[7])
#define ON 1ul /* the first, for executing, in this thread */

static bool is_return(long code)
{
	unsigned char first = code & 0xff, second = code >> 8 & 0xff;

	if (first == 0xf3 || first == 0xf2) /* rep ret, bnd ret */
		first = second;
	return first == 0xc3 || first == 0xc2;
}
#else
#define INSTRUCTION_POINTER 0
#define STACK_POINTER 0
#define BREAKPOINT_AT 0
#define BREAKPOINT_ON 0
#define ON 0

static bool is_return(long code)
{
	return code == 0;
}
#endif

/* A thread that was killed in the meantime has no registers: 0, and waitpid says so. */
static uintptr_t read_register(const struct tracer *t, size_t which)
{
	long at;

	errno = 0;
	at = ptrace(PTRACE_PEEKUSER, t->pid, which, 0);
	return errno ? 0 : (uintptr_t)at;
}

static long read_word(const struct tracer *t, uintptr_t at)
{
	long word;

	errno = 0;
	word = ptrace(PTRACE_PEEKDATA, t->pid, at, 0);
	return errno ? 0 : word;
}

static bool is_in_object(const struct tracer *t, uintptr_t at)
{
	for (unsigned i = 0; i < t->ranges; i++)
		if (at - t->range[i].from < t->range[i].to - t->range[i].from)
			return true;
	return false;
}

/* A line of /proc/PID/maps. */
static void add_range(struct tracer *t, const char *line)
{
	unsigned long from, to;
	char rights[5];
	int path = 0;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &from, &to, rights, &path) < 3 || !path ||
	    rights[2] != 'x' || strcmp(line + path, t->object))
		return;
	if (t->ranges == RANGES_MAX)
		fail(1, "%s has more than %d executable mappings", t->object, RANGES_MAX);
	t->range[t->ranges++] = (struct range) { from, to };
}

static FILE *open_facts(const struct tracer *t, const char *name)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)t->pid, name);
	f = fopen(path, "re");
	if (!f)
		fail(1, "%s: %s", path, strerror(errno));
	return f;
}

static void find_object(struct tracer *t)
{
	FILE *maps = open_facts(t, "maps");
	char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, maps) > 0) {
		line[strcspn(line, "\n")] = 0;
		add_range(t, line);
	}
	free(line);
	fclose(maps);
	if (!t->ranges)
		fail(1, "%s is not mapped in process %d when it asks for counting", t->object,
		     (int)t->pid);
}

static void come_back(struct tracer *t)
{
	ptrace(PTRACE_POKEUSER, t->pid, BREAKPOINT_ON, 0);
	t->away = false;
}

static void take_mark(struct tracer *t, int mark)
{
	if (mark == STEP_DUMP) {
		fprintf(t->out, "%lu\n", t->count);
		t->count = 0;
		return;
	}
	if (!t->ranges)
		find_object(t);
	if (t->away)
		come_back(t);
	t->stepping = !t->stepping;
}

/* By a call, or by a jump that leaves the return to who called the function that has jumped. */
static bool has_called(const struct tracer *t)
{
	return !is_in_object(t, read_register(t, INSTRUCTION_POINTER)) &&
	       !is_return(read_word(t, t->last));
}

static void run_until_return(struct tracer *t)
{
	t->stack = read_register(t, STACK_POINTER);
	t->return_to = (uintptr_t)read_word(t, t->stack);
	t->away = is_in_object(t, t->return_to) &&
		  !ptrace(PTRACE_POKEUSER, t->pid, BREAKPOINT_AT, t->return_to) &&
		  !ptrace(PTRACE_POKEUSER, t->pid, BREAKPOINT_ON, ON);
}

static void end_step(struct tracer *t)
{
	t->count += t->inside;
	if (t->inside && has_called(t))
		run_until_return(t);
}

static void end_trap(struct tracer *t)
{
	if (!t->away)
		end_step(t);
	else if (read_register(t, STACK_POINTER) > t->stack)
		come_back(t); /* and not another call from the same place that was called back */
}

/* A breakpoint of the program's own is SI_KERNEL, kill() SI_USER. */
static bool is_own_trap(int code)
{
	return code == TRAP_TRACE || code == TRAP_BRKPT || code == TRAP_HWBKPT;
}

/* The signal that the program receives, or 0. */
static int take_signal(struct tracer *t, int sig)
{
	siginfo_t info = { 0 };

	if (ptrace(PTRACE_GETSIGINFO, t->pid, 0, &info))
		return 0; /* killed: waitpid says so */
	if (sig == STEP_SIGNAL && info.si_code == SI_QUEUE && info.si_pid == t->pid) {
		take_mark(t, info.si_value.sival_int);
		return 0;
	}
	if (sig != SIGTRAP || !t->stepping || !is_own_trap(info.si_code))
		return sig;
	end_trap(t);
	return 0;
}

/* The program has a handler for it. */
static bool is_caught(const struct tracer *t, int sig)
{
	FILE *status = open_facts(t, "status");
	unsigned long caught = 0;
	char line[256];

	while (fgets(line, sizeof(line), status))
		if (sscanf(line, "SigCgt: %lx", &caught) == 1)
			break;
	fclose(status);
	return caught >> (sig - 1) & 1;
}

static void go_on(const struct tracer *t, int sig)
{
	bool step = t->stepping && !t->away;

	ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, t->pid, 0, (void *)(uintptr_t)sig);
}

static void resume(struct tracer *t, int sig)
{
	t->last = read_register(t, INSTRUCTION_POINTER);
	/* A step into a handler ends before the first instruction there: none is executed. */
	t->inside = is_in_object(t, t->last) && !(sig && is_caught(t, sig));
	go_on(t, sig);
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void handle_stop(struct tracer *t, int status)
{
	int sig = WSTOPSIG(status);

	if (status >> 16 != PTRACE_EVENT_STOP)
		resume(t, take_signal(t, sig));
	else if (is_stop_signal(sig))
		ptrace(PTRACE_LISTEN, t->pid, 0,
		       0); /* stopped until SIGCONT, as without a tracer */
	else
		go_on(t, 0); /* the step's trap may be on its way: it is the same step still */
}

/* The program's exit status, as a shell has it. */
static int trace(struct tracer *t)
{
	int status;

	for (;;) {
		while (waitpid(t->pid, &status, __WALL) < 0)
			if (errno != EINTR)
				fail(1, "waitpid: %s", strerror(errno));
		if (WIFEXITED(status))
			return WEXITSTATUS(status);
		if (WIFSIGNALED(status))
			return 128 + WTERMSIG(status);
		handle_stop(t, status);
	}
}

/* Begins when it is traced, which a byte says. */
__attribute__((noreturn)) static void run_program(int start, char **command)
{
	char byte;

	if (read(start, &byte, 1) != 1)
		_exit(1); /* the tracer has said why */
	close(start);
	setenv(STEP_VARIABLE, "1", 1);
	execvp(command[0], command);
	fprintf(stderr, "bench-step: %s: %s\n", command[0], strerror(errno));
	_exit(127);
}

static void start_program(struct tracer *t, char **command)
{
	int start[2];

	if (pipe(start))
		fail(1, "pipe: %s", strerror(errno));
	t->pid = fork();
	if (t->pid < 0)
		fail(1, "fork: %s", strerror(errno));
	if (!t->pid) {
		close(start[1]);
		run_program(start[0], command);
	}
	close(start[0]);
	if (ptrace(PTRACE_SEIZE, t->pid, 0, PTRACE_O_EXITKILL))
		fail(SKIP,
		     "ptrace is not permitted here: %s (kernel.yama.ptrace_scope, or the "
		     "container's seccomp filter)",
		     strerror(errno));
	if (write(start[1], "", 1) != 1)
		fail(1, "the program did not begin: %s", strerror(errno));
	close(start[1]);
}

int main(int argc, char **argv)
{
	struct tracer t = { 0 };
	int status;

	if (argc < 4)
		fail(1, "usage: %s OUT OBJECT PROGRAM [ARGUMENT...]", argv[0]);
	if (!INSTRUCTION_POINTER)
		fail(SKIP, "stepping is for x86-64 only");
	t.object = realpath(argv[2], NULL);
	if (!t.object)
		fail(1, "%s: %s", argv[2], strerror(errno));
	t.out = fopen(argv[1], "we");
	if (!t.out)
		fail(1, "%s: %s", argv[1], strerror(errno));
	start_program(&t, &argv[3]);
	status = trace(&t);
	if (fclose(t.out))
		fail(1, "%s: %s", argv[1], strerror(errno));
	free((char *)t.object);
	return status;
}
