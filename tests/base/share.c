/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/base/share.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define PROCESSES_MAX 4096

struct process {
	pid_t pid, parent;
	double used_s; /* and what its children used that it has waited for */
};

static bool read_process(const char *pid, struct process *p)
{
	unsigned long long used[4];
	char path[64];
	int parent, n;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return false; /* it has ended meanwhile */
	/* proc(5): the name may hold anything but ends at the last parenthesis, of which the names
	 * here have one */
	n = fscanf(file,
		   "%*d (%*[^)]) %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		   &parent, &used[0], &used[1], &used[2], &used[3]);
	fclose(file);
	if (n != 5)
		return false;
	*p = (struct process) {
		.pid = (pid_t)atoi(pid),
		.parent = parent,
		.used_s = (double)(used[0] + used[1] + used[2] + used[3]) /
			  (double)sysconf(_SC_CLK_TCK),
	};
	return true;
}

static unsigned list_processes(struct process *list)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	unsigned n = 0;

	while (dir && n < PROCESSES_MAX && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]))
			n += read_process(entry->d_name, &list[n]);
	if (dir)
		closedir(dir);
	return n;
}

static bool is_own_descendant(const struct process *list, unsigned n, pid_t pid)
{
	pid_t me = getpid();

	for (unsigned steps = 0; pid > 1 && steps < 64; steps++) {
		unsigned i = 0;

		if (pid == me)
			return true;
		while (i < n && list[i].pid != pid)
			i++;
		if (i == n)
			return false;
		pid = list[i].parent;
	}
	return false;
}

static double read_own_s(void)
{
	static struct process list[PROCESSES_MAX];
	unsigned n = list_processes(list);
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		if (is_own_descendant(list, n, list[i].pid))
			sum += list[i].used_s;
	return sum;
}

struct share share_read(void)
{
	double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
	unsigned long long t[8] = { 0 };
	struct share share = { .own_s = read_own_s() };
	FILE *file = fopen("/proc/stat", "r");

	/* user nice system idle iowait irq softirq steal */
	if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1], &t[2],
			   &t[3], &t[4], &t[5], &t[6], &t[7]) == 8) {
		for (int i = 0; i < 8; i++)
			share.all_s += (double)t[i] * tick_s;
		share.idle_s = (double)(t[3] + t[4]) * tick_s;
	}
	if (file)
		fclose(file);
	return share;
}

double share_of_others(const struct share *before)
{
	struct share now = share_read();
	double all = now.all_s - before->all_s;
	double others = all - (now.idle_s - before->idle_s) - (now.own_s - before->own_s);

	return all > 0 && others > 0 ? others / all : 0;
}

void share_check_limit(const struct share *before, const char *what, double took_s, double limit_s)
{
	double others;

	if (took_s <= limit_s)
		return;
	others = share_of_others(before);
	fflush(stdout);
	if (others > SHARE_OTHERS_MAX) {
		fprintf(stderr,
			"machine too busy: %s took %.1f s, the limit is %.1f s, and others had "
			"%.0f %% of the processors\n",
			what, took_s, limit_s, others * 100);
		_exit(SHARE_BUSY_STATUS);
	}
	fprintf(stderr,
		"%s took %.1f s, the limit is %.1f s; others had only %.0f %% of the processors\n",
		what, took_s, limit_s, others * 100);
	_exit(1);
}
