/* SPDX-License-Identifier: BSD-3-Clause */
/* udp_wire.h - the inside of the UDP wire, shared by udp.c (sockets), udp_tx.c and udp_rx.c */
#ifndef SOFTROCE_UDP_WIRE_H
#define SOFTROCE_UDP_WIRE_H

#include "base/rng.h"
#include "softroce/held.h"
#include "softroce/limit.h"
#include "softroce/udp.h"

#include <netinet/in.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define SR_TX_MSGS 64 /* datagrams (or runs of segments) handed to the kernel at once */
#define SR_TX_IOVS 512
#define SR_TX_ARENA (192 << 10) /* headers, trailers and copied payloads of one hand-over */
#define SR_TX_SEGMENTS 64       /* UDP_MAX_SEGMENTS of kernels before 6.10 */
#define SR_TX_BYTES 65000       /* of one run: an IPv4 packet is at most 65,535 bytes long */
#define SR_RX_POOL (512 << 10)
#define SR_RX_GRO_BUFFER (64 << 10)
#define SR_RX_BUFFER (8 << 10)
#define SR_RX_MSGS (SR_RX_POOL / SR_RX_BUFFER)
#define SR_CONTROL_SPACE 64 /* two control messages with an int each */

struct sr_socket {
	int fd; /* -1: this GID is not in use */
	uint8_t gid[16];
	unsigned ifindex;
};

union sr_address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* One message for sendmmsg(): a packet, or a run of packets of equal size. */
struct sr_run {
	int socket; /* index */
	uint8_t dst[16], tclass;
	uint32_t segment, bytes, segments;
	bool closed; /* nothing more may be appended */
	uint32_t iov, iov_n;
};

/* What a full socket left over: the bytes are ours, sent again when the socket has room. */
struct sr_stuck {
	STAILQ_ENTRY(sr_stuck) link;
	struct sr_run run;
	uint8_t data[];
};

struct sr_udp {
	struct sr_socket sockets[SR_GIDS];
	bool gso;
	const struct sr_faults *faults;
	struct sr_rng rng;
	struct sr_held_list held;
	struct sr_wire_counters counters;
	unsigned receive_buffer;
	struct sr_limit own, *upstream; /* upstream: of others too; NULL = none */
	uint64_t rate;                  /* of `own`, without faults */
	uint64_t limited_until;         /* ns: a packet was refused until then; 0 = none was */
	/* ns: what waited has been notified and was not all sent yet; 0 = nothing waits */
	uint64_t due;
	bool refused; /* since the last flush */

	struct sr_run runs[SR_TX_MSGS];
	unsigned runs_n, iov_n;
	uint32_t arena_n, queued;      /* bytes */
	STAILQ_HEAD(, sr_stuck) stuck; /* in the order in which they are sent */
	union sr_address names[SR_TX_MSGS];
	struct mmsghdr messages[SR_TX_MSGS];
	uint8_t control[SR_TX_MSGS][SR_CONTROL_SPACE] __attribute__((aligned(8)));
	struct iovec iov[SR_TX_IOVS];
	uint8_t arena[SR_TX_ARENA];

	struct mmsghdr rx_messages[SR_RX_MSGS];
	struct iovec rx_iov[SR_RX_MSGS];
	union sr_address rx_names[SR_RX_MSGS];
	uint8_t rx_control[SR_RX_MSGS][SR_CONTROL_SPACE] __attribute__((aligned(8)));
	uint8_t *rx_pool;
};

/*
 * Give a packet to the engine. What the engine writes then is what DMA would write: the application
 * learns of it by a completion, by looking at its memory, or from its peer, and the memory model of
 * C knows only of the first. So
 * ThreadSanitizer is asked not to look.
 */
void sr_udp_deliver(struct sr_nic *nic, uint64_t now, const struct sr_path *path,
		    const void *packet, uint32_t len);

/* The socket address of a GID's owner on the RoCEv2 port; its length. */
socklen_t sr_udp_address(const struct sr_socket *from, const uint8_t gid[16],
			 union sr_address *out);
/* One finished datagram (a held packet that is due). */
void sr_udp_send_held(struct sr_udp *udp, const struct sr_held *held);
/* Try again what a full socket left over; true when nothing is left. */
bool sr_udp_unstick(struct sr_udp *udp);

#endif
