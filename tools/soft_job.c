/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/soft_job.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "base/process.h"

struct place {
	pid_t parent, session;
	char name[32];
};

/*
 * proc(5): "pid (name) state parent group session ..."; the name may hold anything. False: there is
 * no such process.
 */
static bool place_read(pid_t pid, struct place *place)
{
	char path[64], text[1024], *open_bracket, *close_bracket;
	int fd, group, parent, session;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	open_bracket = strchr(text, '(');
	close_bracket = strrchr(text, ')');
	if (!open_bracket || !close_bracket)
		return false;
	if (sscanf(close_bracket + 1, " %*c %d %d %d", &parent, &group, &session) != 3)
		return false;
	place->parent = parent;
	place->session = session;
	snprintf(place->name, sizeof(place->name), "%.*s", (int)(close_bracket - open_bracket - 1),
		 open_bracket + 1);
	return true;
}

pid_t ha_soft_job_of(pid_t pid)
{
	struct place place;

	if (!place_read(pid, &place))
		return 0;
	return place.parent > 1 ? place.parent : place.session;
}

/* The job whose measurement runs this command (--at of ha perf); 0: none does. */
static pid_t own_job(const struct sr_control_entry *list, int n)
{
	const char *text = getenv("HA_RANK_PID_0");
	uint64_t rank;

	if (!text || !ha_number_parse(text, 1, INT32_MAX, &rank))
		return 0;
	for (int i = 0; i < n; i++)
		if (list[i].page.pid == rank)
			return ha_soft_job_of((pid_t)rank);
	return 0;
}

pid_t ha_soft_job_choose(const struct sr_control_entry *list, int n)
{
	pid_t job = own_job(list, n);
	uint64_t latest = 0;

	for (int i = 0; i < n && !job; i++) {
		uint64_t start = ha_process_start((pid_t)list[i].page.pid);

		latest = start > latest ? start : latest;
	}
	for (int i = 0; i < n && !job; i++)
		if (ha_process_start((pid_t)list[i].page.pid) == latest)
			job = ha_soft_job_of((pid_t)list[i].page.pid);
	return job;
}

int ha_soft_job_keep(struct sr_control_entry *list, int n, pid_t job)
{
	int kept = 0;

	/* Any process of the job names it, too. */
	for (int i = 0; i < n; i++)
		if ((pid_t)list[i].page.pid == job) {
			job = ha_soft_job_of(job);
			break;
		}
	for (int i = 0; i < n; i++)
		if (ha_soft_job_of((pid_t)list[i].page.pid) == job)
			list[kept++] = list[i];
	return kept;
}

static void job_print(const struct sr_control_entry *all, int n, pid_t job, FILE *out)
{
	struct place place;
	bool first = true;

	fprintf(out, "job %d (", (int)job);
	for (int i = 0; i < n; i++) {
		pid_t pid = (pid_t)all[i].page.pid;

		if (ha_soft_job_of(pid) != job || !place_read(pid, &place))
			continue;
		fprintf(out, "%s%s %d", first ? "" : ", ", place.name, (int)pid);
		first = false;
	}
	fprintf(out, ")");
}

/* The job of device `i` has no device before it. */
static bool first_of_job(const struct sr_control_entry *all, int i)
{
	pid_t job = ha_soft_job_of((pid_t)all[i].page.pid);

	for (int j = 0; j < i; j++)
		if (ha_soft_job_of((pid_t)all[j].page.pid) == job)
			return false;
	return true;
}

void ha_soft_job_print(const struct sr_control_entry *all, int n, pid_t job, FILE *out)
{
	job_print(all, n, job, out);
	for (int i = 0; i < n; i++) {
		pid_t other = ha_soft_job_of((pid_t)all[i].page.pid);

		if (!other || other == job || !first_of_job(all, i))
			continue;
		fprintf(out, "; not ");
		job_print(all, n, other, out);
	}
	fprintf(out, "\n");
}
