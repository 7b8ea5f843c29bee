/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/host.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/ifaddr.h"
#include "base/socket.h"
#include "rdma/topo/sysfs.h"
#include "tools/doctor/library.h"
#include "tools/job/self.h"

#define PLUGIN "libnccl-net-ha.so"
#define NCCL_LIBRARY "libnccl.so.2"
#define BACKEND_SOCKET "/run/hawser/ina.sock"

/* ---- what sysfs has ---- */

const char *doctor_netdev(const struct doctor_host *host, const struct ha_topo_device *dev,
			  char *name, size_t size)
{
	return ha_sysfs_netdev(host->config->sysfs_root, name, size, dev->name, dev->port);
}

bool doctor_has_gpu(const struct doctor_host *host)
{
	return ha_sysfs_exists(host->config->sysfs_root, "/sys/module/nvidia") ||
	       ha_sysfs_exists(host->config->sysfs_root, "/sys/module/amdgpu");
}

/* ---- NCCL's versions ---- */

int doctor_nccl_interface(int nccl_version)
{
	/* The first release that looks for each version of the interface (src/include of its
	 * tag). */
	static const struct {
		int nccl, net;
	} since[] = {
		{ 23000, 12 }, { 22800, 11 }, { 22600, 10 }, { 22400, 9 },
		{ 22000, 8 },  { 21900, 7 },  { 21300, 6 },
	};

	for (size_t i = 0; i < sizeof(since) / sizeof(since[0]); i++)
		if (nccl_version >= since[i].nccl)
			return since[i].net;
	return 0;
}

int doctor_highest_version(unsigned mask, int most)
{
	while (most > 0 && !(mask & 1U << most))
		most--;
	return most;
}

/* ---- the running system ---- */

static const char *get_environment(const char *name)
{
	const char *text = getenv(name);

	return text && *text ? text : NULL; /* empty counts as not set, as with NCCL */
}

static uint64_t take_limit(rlim_t limit)
{
	return limit == RLIM_INFINITY ? DOCTOR_UNLIMITED : (uint64_t)limit;
}

/* The capability in the effective set of this process (proc(5), CapEff). */
static bool may_lock_all(void)
{
	unsigned long long effective = 0;
	char line[256];
	FILE *status = fopen("/proc/self/status", "re");

	if (!status)
		return false;
	while (fgets(line, sizeof(line), status) && sscanf(line, "CapEff: %llx", &effective) != 1)
		;
	fclose(status);
	return effective >> CAP_IPC_LOCK & 1;
}

static void gather_limits(struct doctor_host *host)
{
	struct statvfs shm;
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
		host->memlock = take_limit(limit.rlim_cur);
		host->memlock_hard = take_limit(limit.rlim_max);
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		host->nofile = take_limit(limit.rlim_cur);
		host->nofile_hard = take_limit(limit.rlim_max);
	}
	host->memlock_exempt = may_lock_all();
	host->shm_free = DOCTOR_UNLIMITED;
	if (!statvfs("/dev/shm", &shm))
		host->shm_free = (uint64_t)shm.f_bavail * shm.f_frsize;
}

static void gather_libraries(struct doctor_host *host, const char *nccl)
{
	const char *names = host->env("NCCL_NET_PLUGIN");
	char beside[PATH_MAX + 32], *slash;

	ha_self_library(host->own_plugin, sizeof(host->own_plugin), PLUGIN);
	if (access(host->own_plugin, R_OK))
		host->own_plugin[0] = 0;
	doctor_plugin_find(&host->plugin, names);
	doctor_library_probe(&host->nccl, nccl ? nccl : NCCL_LIBRARY);
	slash = strrchr(host->plugin.path, '/');
	snprintf(beside, sizeof(beside), "%.*s/hawser/libnccl-net.so",
		 slash ? (int)(slash - host->plugin.path) : 0, host->plugin.path);
	host->default_name = !access(beside, R_OK);
}

/* Does anybody accept at this socket? */
static enum doctor_daemon ask_socket(const char *path, int type)
{
	int fd;

	if (access(path, F_OK))
		return DOCTOR_DAEMON_ABSENT;
	fd = ha_socket_connect_unix(path, type, 0);
	if (fd == -ENAMETOOLONG)
		return DOCTOR_DAEMON_ABSENT;
	if (fd < 0)
		return DOCTOR_DAEMON_SILENT;
	close(fd);
	return DOCTOR_DAEMON_ANSWERS;
}

static void gather_network(struct doctor_host *host)
{
	struct ha_ifaddr chosen;
	char *port;

	if (ha_ifaddr_select(host->config, &chosen))
		return;
	snprintf(host->oob_name, sizeof(host->oob_name), "%s", chosen.name);
	ha_sockaddr_text(&chosen.addr, host->oob_address);
	port = strrchr(host->oob_address, ':'); /* 0: nobody has chosen one yet */
	if (port)
		*port = 0;
}

void doctor_host_gather(struct doctor_host *host, const char *nccl)
{
	const char *backend;

	host->env = get_environment;
	gethostname(host->name, sizeof(host->name) - 1);
	gather_limits(host);
	gather_libraries(host, nccl);
	gather_network(host);
	host->agent = ask_socket(host->config->agent_socket, SOCK_STREAM);
	backend = host->env("NETCCL_BACKEND");
	host->backend = ask_socket(backend ? backend : BACKEND_SOCKET, SOCK_SEQPACKET);
}
