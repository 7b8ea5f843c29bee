/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hand of the host in a lab machine: takes commands from a virtio serial port, runs each under
 * `sh` in a process group of its own, and sends back what it prints and how it ends. Any number run
 * at the same time.
 *
 * Both ways a frame is a header of three little-endian 32-bit words and a payload: kind, number of
 * the command, length. A HELLO, whose header cannot be taken for another, shows the host where
 * frames begin after a reboot. A PULSE every 50 ms reports that the machine runs: under emulation,
 * on a busy host, it may stand still for a second, and no scenario may blame the plugin.
 *
 * As a command it does what a shell cannot do fast or exactly enough: commands.h.
 */
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define JOBS 64
#define LONGEST 65536
#define PULSE 50 /* ms */

enum kind {
	KIND_RUN = 1,            /* to the guest: a shell command */
	KIND_KILL = 2,           /* to the guest: "9": that signal to the command's process group */
	KIND_CLOCK = 3,          /* to the guest: nothing; back: CLOCK_MONOTONIC, ns */
	KIND_OUTPUT = 4,         /* to the host */
	KIND_END = 5,            /* to the host: exit status, 128 + signal */
	KIND_PULSE = 6,          /* to the host: CLOCK_MONOTONIC, ns */
	KIND_HELLO = 0x4c41424c, /* to the host: the agent has started */
};

struct header {
	uint32_t kind, number, length;
};

struct job {
	uint32_t number;
	pid_t pid;  /* 0: free */
	int output; /* -1: at its end */
};

static struct job jobs[JOBS];
static int port;

static void exit_with_error(const char *what)
{
	fprintf(stderr, "agent: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The host is not there while it starts or restarts: reads give 0 then, writes fail. */
static void port_read(void *data, size_t length)
{
	char *at = data;

	while (length) {
		ssize_t n = read(port, at, length);

		if (n > 0) {
			at += n;
			length -= (size_t)n;
		} else if (n < 0 && errno != EINTR) {
			exit_with_error("read");
		} else {
			usleep(10000);
		}
	}
}

static void port_write(const void *data, size_t length)
{
	const char *at = data;

	while (length) {
		ssize_t n = write(port, at, length);

		if (n > 0) {
			at += n;
			length -= (size_t)n;
		} else if (n < 0 && errno != EINTR && errno != EAGAIN) {
			exit_with_error("write");
		} else {
			usleep(1000);
		}
	}
}

static void frame_send(enum kind kind, uint32_t number, const void *data, size_t length)
{
	struct header header = { (uint32_t)kind, number, (uint32_t)length };

	port_write(&header, sizeof(header));
	port_write(data, length);
}

static void job_exec(const char *command, int output)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	setsid();
	setpriority(PRIO_PROCESS, 0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(null, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void job_start(uint32_t number, const char *command)
{
	struct job *job = NULL;
	int ends[2];

	for (int i = 0; i < JOBS && !job; i++)
		if (!jobs[i].pid)
			job = &jobs[i];
	if (!job || pipe2(ends, O_CLOEXEC)) {
		frame_send(KIND_END, number, "125", 3);
		return;
	}
	job->number = number;
	job->output = ends[0];
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	job->pid = fork();
	if (!job->pid)
		job_exec(command, ends[1]);
	close(ends[1]);
	if (job->pid < 0)
		exit_with_error("fork");
}

static void job_kill(uint32_t number, int signal)
{
	for (int i = 0; i < JOBS; i++)
		if (jobs[i].pid && jobs[i].number == number)
			kill(-jobs[i].pid, signal);
}

long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void send_clock(enum kind kind, uint32_t number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld", now_ns());

	frame_send(kind, number, text, (size_t)n);
}

static void frame_take(void)
{
	static char text[LONGEST + 1];
	struct header header;

	port_read(&header, sizeof(header));
	if (header.length > LONGEST) {
		errno = EMSGSIZE;
		exit_with_error("a frame");
	}
	port_read(text, header.length);
	text[header.length] = 0;
	if (header.kind == KIND_RUN)
		job_start(header.number, text);
	else if (header.kind == KIND_KILL)
		job_kill(header.number, atoi(text));
	else if (header.kind == KIND_CLOCK)
		send_clock(KIND_CLOCK, header.number);
}

/* What the command has printed so far; at the end of the file nothing more is asked of it. */
static void output_take(struct job *job)
{
	char data[16384];
	ssize_t n;

	while (job->output >= 0 && (n = read(job->output, data, sizeof(data))) != 0) {
		if (n < 0 && errno != EINTR)
			return;
		if (n > 0)
			frame_send(KIND_OUTPUT, job->number, data, (size_t)n);
	}
	if (job->output >= 0)
		close(job->output);
	job->output = -1;
}

/* A command ends when its shell ends, whatever it may have left in the background. */
static void jobs_reap(void)
{
	char text[16];
	int status, n;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < JOBS; i++) {
			struct job *job = &jobs[i];

			if (job->pid != pid)
				continue;
			output_take(job);
			if (job->output >= 0)
				close(job->output);
			n = snprintf(text, sizeof(text), "%d",
				     WIFEXITED(status) ? WEXITSTATUS(status)
						       : 128 + WTERMSIG(status));
			frame_send(KIND_END, job->number, text, (size_t)n);
			*job = (struct job) { .output = -1 };
		}
}

static void send_pulse(void)
{
	static long long last;
	long long now = now_ns();

	if (now - last < PULSE * 1000000LL)
		return;
	last = now;
	send_clock(KIND_PULSE, 0);
}

static void serve_once(int signals)
{
	struct pollfd fds[JOBS + 2] = { { .fd = port, .events = POLLIN },
					{ .fd = signals, .events = POLLIN } };
	struct signalfd_siginfo info;

	for (int i = 0; i < JOBS; i++) /* poll leaves negative descriptors alone */
		fds[i + 2] = (struct pollfd) { .fd = jobs[i].pid ? jobs[i].output : -1,
					       .events = POLLIN };
	if (poll(fds, JOBS + 2, PULSE) < 0 && errno != EINTR)
		exit_with_error("poll");
	send_pulse();
	for (int i = 0; i < JOBS; i++)
		if (fds[i + 2].revents)
			output_take(&jobs[i]);
	if (fds[1].revents && read(signals, &info, sizeof(info)) > 0)
		jobs_reap();
	if (fds[0].revents & POLLIN)
		frame_take();
	else if (fds[0].revents & POLLHUP)
		usleep(10000);
}

static int clock_command(void)
{
	printf("%lld\n", now_ns());
	return 0;
}

static void serve_port(const char *path)
{
	sigset_t child;
	int signals;

	for (int i = 0; i < JOBS; i++)
		jobs[i].output = -1;
	port = open(path, O_RDWR | O_CLOEXEC);
	if (port < 0)
		exit_with_error(path);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	signals = signalfd(-1, &child, SFD_CLOEXEC);
	if (signals < 0)
		exit_with_error("signalfd");
	setpriority(PRIO_PROCESS, 0, -10); /* the ranks poll, and there is one processor */
	frame_send(KIND_HELLO, 0, NULL, 0);
	for (;;)
		serve_once(signals);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "clock"))
		return clock_command();
	if (argc == 3 && !strcmp(argv[1], "follow"))
		return follow_command(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "silence"))
		return silence_command(argv[2], argv[3]);
	if (argc == 2)
		serve_port(argv[1]);
	fprintf(stderr, "usage: agent PORT | agent clock | agent follow FILE | "
			"agent silence DEVICE NANOSECONDS|on|off\n");
	return 2;
}
