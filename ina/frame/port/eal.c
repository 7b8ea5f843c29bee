/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/eal.h"

#include "base/log.h"
#include "ina/frame/cpus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define MEMORY_MB 256
#define ARGUMENTS_MAX (2 * INA_PORTS_MAX + 48)
#define HUGE_DIR "/sys/kernel/mm/hugepages"

static cpu_set_t before; /* where the process could run */
static bool memif;       /* there is one */
static bool others;      /* there are ports that are neither memif nor af_packet */

/* ---- DPDK's lines ---- */

/* of the start, which has one thread: what went wrong there is in the answer */
static char first_line[256];
static bool started;

static void was_line_printed(char *line, size_t len)
{
	while (len && isspace((unsigned char)line[len - 1]))
		line[--len] = 0;
	if (!len)
		return;
	if (!started && !*first_line)
		snprintf(first_line, sizeof(first_line), "%s", line);
	if (started && rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR)
		HA_WARN("dpdk", "%s", line);
	else
		HA_INFO("dpdk", "%s", line);
}

static ssize_t log_lines(void *cookie, const char *text, size_t len)
{
	char line[256];
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '\n' && n < sizeof(line) - 1)
			line[n++] = text[i];
		if (text[i] == '\n' || i + 1 == len) {
			line[n] = 0;
			was_line_printed(line, n);
			n = 0;
		}
	}
	return (ssize_t)len;
}

static int open_log(void)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t) { .write = log_lines });

	if (!f)
		return -ENOMEM;
	setvbuf(f, NULL, _IOLBF, 512);
	return rte_openlog_stream(f) ? -EINVAL : 0;
}

/* ---- arguments ---- */

struct arguments {
	char *v[ARGUMENTS_MAX + 1];
	int n;
	bool short_of; /* memory or room */
};

static void add_argument(struct arguments *a, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_argument(struct arguments *a, const char *format, ...)
{
	va_list ap;

	if (a->n == ARGUMENTS_MAX) {
		a->short_of = true;
		return;
	}
	va_start(ap, format);
	if (vasprintf(&a->v[a->n], format, ap) < 0) {
		a->v[a->n] = NULL;
		a->short_of = true;
	}
	va_end(ap);
	a->n++;
}

/* A PCI address with or without domain, or a device of another bus. */
static bool is_hardware(const char *port)
{
	unsigned a, b, c, d;

	return sscanf(port, "%x:%x:%x.%x", &a, &b, &c, &d) == 4 ||
	       sscanf(port, "%x:%x.%x", &a, &b, &c) == 3 || !strncmp(port, "auxiliary:", 10) ||
	       !strncmp(port, "pci:", 4);
}

/* What an option of a device says, or "". */
static void device_option(const char *port, const char *key, char *value, size_t size)
{
	const char *at = strstr(port, key);
	size_t len = at ? strcspn(at + strlen(key), ",") : 0;

	snprintf(value, size, "%.*s", (int)len, at ? at + strlen(key) : "");
}

/*
 * The socket of a memif's server may be left of a process that was killed; the driver would not
 * listen there. To ask whether somebody runs there would kill him (port.c), so there is a lock
 * beside it, which exists as long as its process.
 */
static int take_socket(const char *port, char *why, size_t size)
{
	char path[108], role[16], abstract[8], lock[128];
	int fd;

	device_option(port, ",role=", role, sizeof(role));
	device_option(port, ",socket=", path, sizeof(path));
	device_option(port, ",socket-abstract=", abstract, sizeof(abstract));
	if (strncmp(port, "net_memif", 9) || (strcmp(role, "server") && strcmp(role, "master")) ||
	    !*path || strcmp(abstract, "no"))
		return 0;
	snprintf(lock, sizeof(lock), "%s.lock", path);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB)) {
		int err = errno;

		snprintf(why, size, "%s: %s", lock,
			 err == EWOULDBLOCK ? "another process serves this memif" : strerror(err));
		return -err;
	}
	unlink(path);
	return 0; /* fd stays open */
}

static int add_ports(struct arguments *a, const struct ina_eal_options *o, char *why, size_t size)
{
	bool hardware = false;

	for (unsigned i = 0; i < o->nports; i++) {
		const char *port = o->port[i];

		if (is_hardware(port)) {
			add_argument(a, "--allow=%s", port);
			hardware = others = true;
		} else if (!strncmp(port, "net_", 4)) {
			int err = take_socket(port, why, size);

			if (err)
				return err;
			memif |= !strncmp(port, "net_memif", 9);
			others |=
				strncmp(port, "net_memif", 9) && strncmp(port, "net_af_packet", 13);
			add_argument(a, "--vdev=%s", port);
		} else {
			snprintf(why, size,
				 "%s: neither a PCI address (0000:01:00.0) nor a device that DPDK "
				 "makes (net_memif0,role=server; net_af_packet0,iface=eth1)",
				 port);
			return -EINVAL;
		}
	}
	if (!hardware)
		add_argument(a, "--no-pci");
	return 0;
}

static int allowed_cpus(int *cpu, int max)
{
	int n = 0;

	for (int i = 0; i < CPU_SETSIZE && n < max; i++)
		if (CPU_ISSET(i, &before))
			cpu[n++] = i;
	return n ? n : -EINVAL;
}

static size_t put_cpus(char *text, size_t size, const int *cpu, unsigned n)
{
	size_t at = 0;

	for (unsigned i = 0; i < n && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s%d", i ? "," : "", cpu[i]);
	return at;
}

/* A processor for each thread that polls; with too few of them all on all. */
static void add_lcores(struct arguments *a, const struct ina_eal_options *o, const int *cpu,
		       unsigned ncpus)
{
	char all[8 * CPU_SETSIZE], text[16 * INA_THREADS_MAX + sizeof(all)];
	unsigned first = o->first_waits ? 1 : 0;
	size_t at = 0;

	put_cpus(all, sizeof(all), cpu, ncpus);
	if (o->shared || o->threads - first > ncpus) {
		snprintf(text, sizeof(text), "(0-%u)@(%s)", o->threads - 1, all);
	} else {
		if (first)
			at = (size_t)snprintf(text, sizeof(text), "0@(%s)", all);
		for (unsigned i = first; i < o->threads; i++)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u@%d",
					       i ? "," : "", i, cpu[i - first]);
	}
	add_argument(a, "--lcores=%s", text);
}

static int add_threads(struct arguments *a, const struct ina_eal_options *o, char *why, size_t size)
{
	int cpu[CPU_SETSIZE];
	int n = o->cpus ? ina_cpus_parse(o->cpus, cpu, CPU_SETSIZE)
			: allowed_cpus(cpu, CPU_SETSIZE);

	if (n < 0) {
		snprintf(why, size, "processors \"%s\": write numbers and ranges, as in 2-5,8",
			 o->cpus ? o->cpus : "");
		return n;
	}
	for (int i = 0; i < n; i++)
		if (!CPU_ISSET(cpu[i], &before)) {
			snprintf(
				why, size,
				"processor %d: this process may not run there (taskset -p, cgroup)",
				cpu[i]);
			return -EINVAL;
		}
	if (!o->threads || o->threads > INA_THREADS_MAX) {
		snprintf(why, size, "%u threads: 1 to %u can be", o->threads, INA_THREADS_MAX);
		return -EINVAL;
	}
	add_lcores(a, o, cpu, (unsigned)n);
	return 0;
}

static unsigned long read_number(const char *dir, const char *name)
{
	char path[320];
	unsigned long v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/free_hugepages", dir, name);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

/* MiB of free hugepages of all sizes. */
static unsigned long huge_mb(void)
{
	struct dirent *e;
	unsigned long mb = 0;
	DIR *d = opendir(HUGE_DIR);

	while (d && (e = readdir(d))) {
		unsigned long kb;

		if (sscanf(e->d_name, "hugepages-%lukB", &kb) == 1)
			mb += read_number(HUGE_DIR, e->d_name) * kb / 1024;
	}
	if (d)
		closedir(d);
	return mb;
}

/* Neither way makes files that another process could meet. */
static void add_memory(struct arguments *a, const struct ina_eal_options *o)
{
	unsigned mb = o->memory_mb ? o->memory_mb : MEMORY_MB;
	unsigned long huge = huge_mb();

	if (huge >= mb) {
		add_argument(a, "--in-memory");
		return;
	}
	HA_INFO("dpdk",
		"%lu MiB of hugepages are free and %u are needed: going on with %u MiB of ordinary "
		"memory, which costs some speed (sysctl vm.nr_hugepages=%u)",
		huge, mb, mb, (mb + 1) / 2);
	add_argument(a, "--no-huge");
	add_argument(a, "--no-shconf");
	add_argument(a, "-m");
	add_argument(a, "%u", mb);
}

static int make_arguments(struct arguments *a, const struct ina_eal_options *o, char *why,
			  size_t size)
{
	int err;

	add_argument(a, "%s", o->program);
	add_argument(a, "--no-telemetry");
	add_argument(a, "--log-level=%s", ha_log_enabled(HA_LOG_TRACE) ? "info" : "error");
	add_memory(a, o);
	err = add_threads(a, o, why, size);
	if (!err)
		err = add_ports(a, o, why, size);
	for (const char *const *more = o->more; !err && more && *more; more++)
		add_argument(a, "%s", *more);
	if (!err && a->short_of) {
		snprintf(why, size, "too many arguments for DPDK");
		err = -E2BIG;
	}
	return err;
}

/* ---- start and end ---- */

/* Drivers are libraries of their own, which nothing links: packages may be without them. */
static const char *driver_hint(void)
{
	if (!strstr(first_line, "failed to parse device"))
		return "";
	return "; is its driver installed? (Debian: librte-meta-net, or librte-net-... alone)";
}

int ina_eal_start(const struct ina_eal_options *o, char *why, size_t size)
{
	struct arguments a = { 0 };
	char *v[ARGUMENTS_MAX + 1];
	int err;

	if (o->nports > INA_PORTS_MAX) {
		snprintf(why, size, "%u ports: at most %d", o->nports, INA_PORTS_MAX);
		return -E2BIG;
	}
	if (sched_getaffinity(0, sizeof(before), &before))
		return -errno;
	err = open_log();
	if (!err)
		err = make_arguments(&a, o, why, size);
	memcpy(v, a.v, sizeof(v)); /* DPDK reorders them */
	*first_line = 0;
	if (!err && rte_eal_init(a.n, v) < 0) {
		snprintf(why, size, "DPDK does not start: %s%s",
			 *first_line ? first_line : rte_strerror(rte_errno), driver_hint());
		err = rte_errno ? -rte_errno : -EIO;
	}
	for (int i = 0; i < a.n; i++)
		free(a.v[i]);
	started = !err;
	return err;
}

/*
 * DPDK's clean-up closes memifs, which is not safe (port.c); nothing of ours outlives the process.
 */
void ina_eal_stop(void)
{
	if (!memif)
		rte_eal_cleanup();
}

const char *ina_eal_complaint(void)
{
	return first_line;
}

bool ina_eal_copies(void)
{
	return !others;
}

void ina_eal_unbind_thread(void)
{
	sched_setaffinity(0, sizeof(before), &before);
}
