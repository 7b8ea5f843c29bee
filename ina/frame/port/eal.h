/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal.h - DPDK's environment, started with arguments of ours
 *
 * One process, for itself: no multi-process files, no telemetry socket, no signal handlers,
 * hugepages when there are enough of them. So any number of programs run side by side, as root, in
 * one container. What DPDK has to say goes through base/log.h, under the name "dpdk".
 */
#ifndef INA_PORT_EAL_H
#define INA_PORT_EAL_H

#include <stdbool.h>
#include <stddef.h>

#define INA_PORTS_MAX 40
#define INA_THREADS_MAX 64

struct ina_eal_options {
	const char *program; /* as DPDK calls it in its lines */
	/*
	 * "net_memif0,role=server,socket=/run/a.sock": a device that DPDK makes; "0000:01:00.0":
	 * one that there is, and its arguments
	 */
	const char *port[INA_PORTS_MAX];
	unsigned nports;
	/* "2-5,8", in the order of threads; NULL: all that the process may use */
	const char *cpus;
	/*
	 * DPDK's lcores 0 to threads - 1; 0 is the caller. More threads than processors share all
	 * of them
	 */
	unsigned threads;
	bool shared;             /* all threads run on all of these processors */
	bool first_waits;        /* thread 0 does not poll and needs no processor of its own */
	unsigned memory_mb;      /* for all packets; 0 = 256 */
	const char *const *more; /* arguments for DPDK as they are, NULL at the end; may be NULL */
};

/* Once in a process. 0, or a negative errno and why: then the process can only end. */
int ina_eal_start(const struct ina_eal_options *options, char *why, size_t size);
/* After all ports are closed and all threads have returned; then the process ends. */
void ina_eal_stop(void);
/* What DPDK complained of first while it started, or "". */
const char *ina_eal_complaint(void);
/*
 * All ports have drivers that copy packets (memif, af_packet): nobody cares where in memory they
 * lie.
 */
bool ina_eal_copies(void);
/*
 * The calling thread may run again where the process could before DPDK bound it: for threads that
 * do not poll, which would inherit a poller's processor.
 */
void ina_eal_unbind_thread(void);

#endif
