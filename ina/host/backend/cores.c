/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/backend/cores.h"

#include "ina/frame/cpus.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Of the node's; without such a file none. */
static int of_node(int node, int *cpu, int max)
{
	char path[96], line[4096];
	int n = 0;
	FILE *f;

	if (node < 0)
		return 0;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		n = ina_cpus_parse(line, cpu, max);
	}
	fclose(f);
	return n < 0 ? 0 : n;
}

static int of_process(const cpu_set_t *may, int *cpu, int max)
{
	int n = 0;

	for (int i = 0; i < CPU_SETSIZE && n < max; i++)
		if (CPU_ISSET(i, may))
			cpu[n++] = i;
	return n;
}

/* Those that the process may use, in the same order. */
static int keep_usable(const cpu_set_t *may, int *cpu, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (CPU_ISSET(cpu[i], may))
			cpu[kept++] = cpu[i];
	return kept;
}

int ha_cores_choose(const char *list, int node, unsigned n, int *cpu, bool *shared, char *why,
		    size_t size)
{
	int all[CPU_SETSIZE], found, usable;
	cpu_set_t may;

	if (sched_getaffinity(0, sizeof(may), &may))
		return -errno;
	found = list ? ina_cpus_parse(list, all, CPU_SETSIZE) : of_node(node, all, CPU_SETSIZE);
	if (found < 0) {
		snprintf(why, size, "processors \"%s\": write numbers and ranges, as in 2-5,8",
			 list);
		return found;
	}
	usable = keep_usable(&may, all, found);
	if (list && usable < found) {
		snprintf(why, size,
			 "processors \"%s\": this process may not use all of them (taskset -p, "
			 "cgroup)",
			 list);
		return -EINVAL;
	}
	if (!list && usable < (int)n)
		usable = of_process(&may, all, CPU_SETSIZE);
	*shared = usable < (int)n;
	for (unsigned i = 0; i < n; i++)
		cpu[i] = *shared ? -1 : all[i];
	if (list && *shared) {
		snprintf(why, size,
			 "processors \"%s\": %u threads poll (the balancer and the workers), give "
			 "one to each",
			 list, n);
		return -EINVAL;
	}
	return 0;
}
