/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of a process, shared memory, the interface of the out-of-band connections. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "tools/doctor/checks.h"

#define MEMLOCK_LITTLE (UINT64_C(64) << 20) /* less than one communicator's buffers */
#define NOFILE_ENOUGH 4096
#define DESCRIPTORS_OF_A_PROCESS 64 /* besides two per connection */
#define SHM_ENOUGH (UINT64_C(256) << 20)

/* Does any device lock the memory that it uses? */
static bool any_locks(const struct ha_topo *topo)
{
	for (int i = 0; i < topo->nports; i++)
		if (!topo->devices[i].place.is_soft)
			return true;
	return !topo->nports;
}

static void check_memlock(const struct doctor_host *host, struct doctor_report *report)
{
	bool little = host->memlock < MEMLOCK_LITTLE;
	struct doctor_finding *f;
	char size[HA_SIZE_TEXT];

	if (host->memlock == DOCTOR_UNLIMITED || host->memlock_exempt || !any_locks(host->topo)) {
		doctor_add(report, DOCTOR_FINE, "memlock", NULL,
			   "locked memory is not limited, or no limit counts here");
		return;
	}
	f = doctor_add(report, little ? DOCTOR_ERROR : DOCTOR_WARNING, "memlock", NULL,
		       "a process may lock %s of memory (ulimit -l)",
		       ha_size_text(host->memlock, size));
	doctor_cost(f,
		    "registering buffers fails beyond it, at the start or at a failover, and NCCL "
		    "ends with an error");
	if (host->memlock_hard == DOCTOR_UNLIMITED)
		doctor_mend(f, "ulimit -l unlimited");
	else
		doctor_mend(f, "'* - memlock unlimited' in /etc/security/limits.conf; a unit: "
			       "LimitMEMLOCK=infinity; docker run --ulimit memlock=-1");
}

static void check_nofile(const struct doctor_host *host, struct doctor_report *report)
{
	uint64_t connections = host->nofile > DESCRIPTORS_OF_A_PROCESS
				       ? (host->nofile - DESCRIPTORS_OF_A_PROCESS) / 2
				       : 0;
	struct doctor_finding *f;

	if (host->nofile >= NOFILE_ENOUGH) {
		doctor_add(report, DOCTOR_FINE, "nofile", NULL, "open files: enough");
		return;
	}
	f = doctor_add(report, DOCTOR_WARNING, "nofile", NULL,
		       "a process may have %" PRIu64 " files open: room for some %" PRIu64
		       " connections",
		       host->nofile, connections);
	doctor_cost(f, "beyond them connecting fails; an all-to-all of 512 ranks needs 1,022");
	if (host->nofile_hard >= NOFILE_ENOUGH)
		doctor_mend(f, "ulimit -n %" PRIu64,
			    host->nofile_hard > 65536 ? UINT64_C(65536) : host->nofile_hard);
	else
		doctor_mend(f, "'* - nofile 65536' in /etc/security/limits.conf; a unit: "
			       "LimitNOFILE=65536; docker run --ulimit nofile=65536");
}

static void check_shm(const struct doctor_host *host, struct doctor_report *report)
{
	struct doctor_finding *f;
	char size[HA_SIZE_TEXT];

	if (host->shm_free >= SHM_ENOUGH) {
		doctor_add(report, DOCTOR_FINE, "shm", "/dev/shm", "it has room");
		return;
	}
	f = doctor_add(report, DOCTOR_WARNING, "shm", "/dev/shm", "%s are free in it",
		       ha_size_text(host->shm_free >> 20 << 20, size));
	doctor_cost(f, "NCCL's shared-memory transport fails to start; no page for `ha status`");
	doctor_mend(f, "docker run --shm-size=1g; else remove old files from /dev/shm");
}

void doctor_check_limits(const struct doctor_host *host, struct doctor_report *report)
{
	check_memlock(host, report);
	check_nofile(host, report);
	check_shm(host, report);
}

void doctor_check_oob(const struct doctor_host *host, struct doctor_report *report)
{
	struct doctor_finding *f;

	if (!*host->oob_name) {
		f = doctor_add(report, DOCTOR_ERROR, "oob", NULL,
			       "no interface fits NCCL_SOCKET_IFNAME=%.64s",
			       host->config->socket_ifname);
		doctor_cost(f, "no connection can be made");
		doctor_mend(f, "export NCCL_SOCKET_IFNAME=NAME; `ip -brief address` lists them");
		return;
	}
	if (!strcmp(host->oob_name, "lo")) {
		f = doctor_add(report, DOCTOR_WARNING, "oob", host->oob_name,
			       "out-of-band connections would use the loopback interface");
		doctor_cost(f, "no other host can connect");
		doctor_mend(f, "ip link set dev NAME up; `ip -brief address` lists them");
		return;
	}
	doctor_add(report, DOCTOR_FINE, "oob", host->oob_name, "out-of-band connections use %s",
		   host->oob_address);
}
