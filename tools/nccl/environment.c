/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/job/self.h"
#include "tools/nccl/environment.h"
#include "tools/nccl/library.h"
#include "tools/nccl/options.h"

#define PORT_FAILOVER_SINCE 22907 /* of NCCL's IB transport: 2.29.7 */

/* Sets what the user has not, and notes it. */
static void set_default(struct nccl_environment *e, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void set_default(struct nccl_environment *e, const char *name, const char *format, ...)
{
	size_t used = strlen(e->set);
	char value[PATH_MAX];
	va_list args;

	if (getenv(name))
		return;
	va_start(args, format);
	vsnprintf(value, sizeof(value), format, args);
	va_end(args);
	setenv(name, value, 1);
	snprintf(e->set + used, sizeof(e->set) - used, "%s%s=%s", used ? " " : "", name, value);
}

/* ---- RDMA devices ---- */

static bool software_nic_preloaded(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "libsoftroce.so");
}

static bool rdma_devices_exist(void)
{
	DIR *folder = opendir("/sys/class/infiniband");
	struct dirent *entry;
	bool found = false;

	if (!folder)
		return false;
	while (!found && (entry = readdir(folder)))
		found = entry->d_name[0] != '.';
	closedir(folder);
	return found;
}

/* NCCL opens libibverbs itself: the software NIC must be in its place before the process begins. */
static int restart_on_software_nic(char **argv)
{
	char self[PATH_MAX], run[PATH_MAX + 32], folder[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *arguments[1024] = { run, self };
	size_t count = 2;

	self[n > 0 ? n : 0] = 0;
	snprintf(run, sizeof(run), "%s/softroce-run", ha_self_folder(folder, sizeof(folder)));
	for (; *argv && count < sizeof(arguments) / sizeof(arguments[0]) - 1; argv++)
		arguments[count++] = *argv;
	arguments[count] = NULL;
	fflush(NULL);
	execv(run, arguments);
	return ha_fault(-errno,
			"NCCL's IB transport needs the software NIC, and %s cannot be started: %s",
			run, strerror(errno));
}

/* ---- all ranks ---- */

static bool uses_verbs(const struct nccl_options *o)
{
	return (o->net && o->net->verbs) || (o->versus && o->versus->verbs);
}

static bool uses_plugin(const struct nccl_options *o)
{
	return (o->net && o->net->plugin) || (o->versus && o->versus->plugin);
}

static void prepare_plugin(struct nccl_environment *e)
{
	char plugin[PATH_MAX];

	if (software_nic_preloaded() || !rdma_devices_exist())
		set_default(e, "HA_NCCL_VERBS", "soft");
	set_default(e, "NCCL_NET_PLUGIN", "%s",
		    ha_self_library(plugin, sizeof(plugin), "libnccl-net-ha.so"));
}

static int prepare_log(struct nccl_environment *e)
{
	const char *where = getenv("TMPDIR");
	char folder[sizeof(e->folder)];

	if (getenv("NCCL_DEBUG") || getenv("NCCL_DEBUG_FILE"))
		return 0;
	if (!where || !*where || strlen(where) > sizeof(folder) - 32)
		where = "/tmp";
	snprintf(folder, sizeof(folder), "%s/ha-nccl-XXXXXX", where);
	if (!mkdtemp(folder))
		return ha_fault(-errno, "no folder for NCCL's log in %s: %s", where,
				strerror(errno));
	strcpy(e->folder, folder);
	set_default(e, "NCCL_DEBUG", "INFO");
	set_default(e, "NCCL_DEBUG_SUBSYS", "INIT,NET");
	set_default(e, "NCCL_DEBUG_FILE", "%s/%%p.log", folder);
	return 0;
}

static int prepare_port_failover(struct nccl_environment *e, const struct ha_probe *probe)
{
	char text[32];

	if (probe->nccl_version < PORT_FAILOVER_SINCE)
		return ha_fault(-EINVAL, "NCCL %s has no port failover; 2.29.7 has",
				ha_nccl_version_text(probe->nccl_version, text));
	set_default(e, "NCCL_IB_RESILIENCY_PORT_FAILOVER", "1");
	set_default(e, "NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME", "1");
	/*
	 * it works between the ports of one fused device; NCCL fuses software NICs only when it is
	 * told to
	 */
	if (software_nic_preloaded())
		set_default(e, "NCCL_NET_FORCE_MERGE", "soft0,soft1");
	return 0;
}

int nccl_environment_prepare(struct nccl_environment *e, const struct nccl_options *o,
			     const struct ha_probe *probe, char **argv)
{
	int err = 0;

	*e = (struct nccl_environment) { 0 };
	if (!probe->soft) {
		if (o->hosts)
			return ha_fault(
				-EINVAL,
				"--hosts emulates hosts, which only softcuda can: --nccl softcuda");
		return o->port_failover ? prepare_port_failover(e, probe) : 0;
	}
	if (uses_verbs(o) && !software_nic_preloaded() && !rdma_devices_exist())
		return restart_on_software_nic(argv);
	if (uses_verbs(o) && software_nic_preloaded())
		strcpy(e->set, "(under softroce-run)");
	if (o->port_failover)
		err = prepare_port_failover(e, probe);
	if (err)
		return err;
	if (uses_plugin(o))
		prepare_plugin(e);
	else
		set_default(e, "NCCL_NET_PLUGIN", "none");
	set_default(e, "NCCL_SOCKET_IFNAME", "lo");
	return prepare_log(e);
}

/* ---- a rank ---- */

void nccl_environment_share(const struct nccl_options *o, const struct ha_place *place,
			    int *processes, int *before)
{
	*processes = o->hosts ? place->ranks / o->hosts : 1;
	*before = place->rank % *processes;
}

int nccl_environment_rank(struct nccl_environment *e, const struct nccl_options *o,
			  const struct ha_probe *probe, const struct ha_place *place)
{
	int processes, before;

	if (!probe->soft)
		return 0;
	if (o->hosts && place->ranks % o->hosts)
		return ha_fault(-EINVAL, "%d ranks cannot be shared evenly by %d hosts",
				place->ranks, o->hosts);
	nccl_environment_share(o, place, &processes, &before);
	set_default(e, "SOFTCUDA_DEVICES", "%d", processes * o->gpus);
	set_default(e, "NCCL_HOSTID", "ha-nccl-%llx-%d", (unsigned long long)place->job,
		    place->rank / processes);
	return 0;
}

/* ---- the end ---- */

static bool is_empty(const char *name)
{
	DIR *folder = opendir(name);
	unsigned entries = 0;

	while (folder && readdir(folder))
		entries++;
	if (folder)
		closedir(folder);
	return entries <= 2; /* . and .. */
}

static void folder_remove(const char *name)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *folder = opendir(name);

	while (folder && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		(void)unlink(path);
	}
	if (folder)
		closedir(folder);
	(void)rmdir(name);
}

void nccl_environment_release(struct nccl_environment *e, int failed)
{
	if (!e->folder[0])
		return;
	if (failed && !is_empty(e->folder)) /* a refusal comes before NCCL */
		fprintf(stderr, "ha nccl: NCCL's log of each rank is in %s\n", e->folder);
	else
		folder_remove(e->folder);
	e->folder[0] = 0;
}
