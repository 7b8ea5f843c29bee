/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * host.h - the host as `ha doctor` sees it: facts, before anybody judges them
 *
 * The checks read nothing but this, sysfs and /proc below `config->sysfs_root`, and the environment
 * through env().
 */
#ifndef HAWSER_DOCTOR_HOST_H
#define HAWSER_DOCTOR_HOST_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "rdma/topo/device.h"
#include "rdma/topo/standby.h"

#define DOCTOR_LINES_MAX 64
#define DOCTOR_UNLIMITED UINT64_MAX

/* A library, as a process that opened it has seen it. */
struct doctor_library {
	bool asked;          /* somebody looked for it */
	bool found;          /* it could be opened */
	char name[PATH_MAX]; /* that it was opened by */
	char path[PATH_MAX]; /* where the loader found it */
	char error[512];     /* what the loader said; "" = nothing */
	int nccl_version;    /* 22907: 2.29.7; 0: it is no NCCL */
	unsigned net;        /* bit v: it has the network interface of version v */
	char network[64];    /* what its newest interface calls the network */
	char hawser[64];     /* which hawser it is; "" = it does not say */
};

/* What the plugin's own code logged as a warning. */
struct doctor_lines {
	char text[DOCTOR_LINES_MAX][512];
	int n;
};

enum doctor_daemon {
	DOCTOR_DAEMON_ABSENT, /* no socket */
	DOCTOR_DAEMON_SILENT, /* a socket where nobody accepts */
	DOCTOR_DAEMON_ANSWERS,
};

struct doctor_host {
	char name[64];
	const struct ha_config *config;
	const struct ha_topo *topo;
	const struct ha_standby *standby;
	const char *verbs; /* the library of verbs; NULL: none could be opened */
	struct doctor_library plugin, nccl;
	char own_plugin[PATH_MAX]; /* the one that was installed with this program; "" = none */
	bool default_name;         /* hawser/libnccl-net.so lies beside the plugin */
	struct doctor_lines from_config, from_devices;
	uint64_t memlock, nofile; /* soft limits; bytes, descriptors */
	uint64_t memlock_hard, nofile_hard;
	bool memlock_exempt;                /* CAP_IPC_LOCK: the limit does not count */
	uint64_t shm_free;                  /* bytes in /dev/shm; DOCTOR_UNLIMITED: not known */
	char oob_name[32], oob_address[64]; /* "" = no interface fits */
	enum doctor_daemon agent, backend;
	const char *(*env)(const char *name); /* NULL where it is not set or empty */
};

/* The network interface of a port; "" = it has none. Returns name. */
const char *doctor_netdev(const struct doctor_host *host, const struct ha_topo_device *dev,
			  char *name, size_t size);
/* The driver of a GPU is loaded. */
bool doctor_has_gpu(const struct doctor_host *host);
/* The highest version of the network interface that an NCCL calls, 6 to 12; 0: older ones. */
int doctor_nccl_interface(int nccl_version);
/* Of the interface versions in `mask` the highest that is at most `most`; 0: none. */
int doctor_highest_version(unsigned mask, int most);

/*
 * Everything that is gathered from the running system: limits, libraries, daemons, names. `nccl`:
 * the library of NCCL to look at. config, topo, standby, verbs and the lines are the caller's.
 */
void doctor_host_gather(struct doctor_host *host, const char *nccl);

#endif
