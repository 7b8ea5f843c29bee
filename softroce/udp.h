/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp.h - the UDP wire: RoCEv2 packets on port 4791 of real sockets
 *
 * The kernel writes IP and UDP headers; we add the ICRC, which covers most of both. Everything runs
 * under the lock of the adapter that owns the wire.
 */
#ifndef SOFTROCE_UDP_H
#define SOFTROCE_UDP_H

#include "softroce/control.h"

#include <poll.h>
#include <time.h>

struct sr_limit;
struct sr_udp;

/* The clock of the wire and its engine: ns. */
static inline uint64_t sr_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

extern const struct sr_wire_ops sr_udp_wire_ops;

/* Offloads are used when `gso` and the kernel has them. NULL with *err set. */
struct sr_udp *sr_udp_create(bool gso, uint32_t seed, const struct sr_faults *faults, int *err);
void sr_udp_destroy(struct sr_udp *udp);
/*
 * Packets leave no faster than this; upstream: nor than it lets through, for all that share it
 * (NULL = none).
 */
void sr_udp_limit(struct sr_udp *udp, uint64_t bytes_per_ms, struct sr_limit *upstream);

/*
 * Give GID `index` a socket bound to its address (ifindex: for link-local ones). -EADDRINUSE,
 * -EADDRNOTAVAIL, ...
 */
int sr_udp_bind(struct sr_udp *udp, unsigned index, const uint8_t gid[16], unsigned ifindex);
void sr_udp_unbind(struct sr_udp *udp, unsigned index);
/* Bytes of receive buffer the kernel granted the smallest of the sockets. */
unsigned sr_udp_receive_buffer(const struct sr_udp *udp);

/* Receive without blocking, at most a few batches. Number of packets given to the engine. */
int sr_udp_receive(struct sr_udp *udp, struct sr_nic *nic, uint64_t now);
/* Deliver the delayed packets that are due. Number given to the engine. */
int sr_udp_run(struct sr_udp *udp, struct sr_nic *nic, uint64_t now);
/* When sr_udp_run() must be called; UINT64_MAX = never. */
uint64_t sr_udp_deadline(const struct sr_udp *udp);
/* True when the last send found a socket full; the worker waits for POLLOUT then. */
bool sr_udp_blocked(const struct sr_udp *udp);
/* Descriptors to poll, with POLLIN when `in` and POLLOUT where blocked; at most SR_GIDS. */
int sr_udp_pollfds(const struct sr_udp *udp, struct pollfd *fds, bool in);
/* Close the sockets and touch nothing else: for a child after fork(). */
void sr_udp_forget(struct sr_udp *udp);

const struct sr_wire_counters *sr_udp_counters(const struct sr_udp *udp);

#endif
