/* SPDX-License-Identifier: BSD-3-Clause */
/* udp.c - the sockets of the UDP wire */
#include "softroce/devices.h"
#include "softroce/udp_wire.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef UDP_SEGMENT /* linux/udp.h, Linux 4.18 and 5.0 */
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

/* bytes; the kernel grants less to the unprivileged (net.core.rmem_max) */
#define SOCKET_BUFFER (32 << 20)

struct sr_udp *sr_udp_create(bool gso, uint32_t seed, const struct sr_faults *faults, int *err)
{
	struct sr_udp *udp = calloc(1, sizeof(*udp));

	*err = -ENOMEM;
	if (!udp)
		return NULL;
	udp->rx_pool = malloc(SR_RX_POOL);
	if (!udp->rx_pool) {
		free(udp);
		return NULL;
	}
	for (int i = 0; i < SR_GIDS; i++)
		udp->sockets[i].fd = -1;
	udp->gso = gso;
	udp->rng.state = seed;
	udp->faults = faults;
	STAILQ_INIT(&udp->stuck);
	*err = 0;
	return udp;
}

void sr_udp_limit(struct sr_udp *udp, uint64_t bytes_per_ms, struct sr_limit *upstream)
{
	udp->rate = bytes_per_ms;
	udp->upstream = upstream;
}

void sr_udp_forget(struct sr_udp *udp)
{
	for (int i = 0; i < SR_GIDS; i++)
		if (udp->sockets[i].fd >= 0) {
			close(udp->sockets[i].fd);
			udp->sockets[i].fd = -1;
		}
}

void sr_udp_destroy(struct sr_udp *udp)
{
	struct sr_stuck *stuck;

	if (!udp)
		return;
	sr_udp_forget(udp);
	sr_held_clear(&udp->held);
	while ((stuck = STAILQ_FIRST(&udp->stuck))) {
		STAILQ_REMOVE_HEAD(&udp->stuck, link);
		free(stuck);
	}
	free(udp->rx_pool);
	free(udp);
}

/* As large as we may: privileged processes may pass the administrator's limit. */
static unsigned buffer_grow(int fd)
{
	int want = SOCKET_BUFFER, got = 0;
	socklen_t len = sizeof(got);

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &got, &len);
	return got;
}

static int socket_configure(struct sr_udp *udp, int fd, bool ipv4)
{
	/* NOLINTNEXTLINE(bugprone-branch-clone): two names of one number */
	int value = ipv4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO, on = 1;
	socklen_t len = sizeof(value);

	/* RoCEv2 packets are never fragmented, and the ICRC covers the flag that says so. */
	if (setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
		       ipv4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &value, sizeof(value)))
		return -errno;
	if (!ipv4 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)))
		return -errno;
	if (udp->gso && (getsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &value, &len) ||
			 setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on))))
		udp->gso = false; /* an older kernel */
	return 0;
}

int sr_udp_bind(struct sr_udp *udp, unsigned index, const uint8_t gid[16], unsigned ifindex)
{
	static const uint8_t zero[16];
	struct sr_socket next = { .ifindex = ifindex };
	bool ipv4 = sr_gid_ipv4(gid);
	union sr_address address;
	unsigned buffer;
	socklen_t len;
	int err;

	sr_udp_unbind(udp, index);
	if (!memcmp(gid, zero, 16))
		return 0;
	memcpy(next.gid, gid, 16);
	next.fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (next.fd < 0)
		return -errno;
	err = socket_configure(udp, next.fd, ipv4);
	if (err)
		goto fail;
	len = sr_udp_address(&next, gid, &address);
	if (bind(next.fd, &address.sa, len)) {
		err = -errno;
		goto fail;
	}
	buffer = buffer_grow(next.fd);
	if (!udp->receive_buffer || buffer < udp->receive_buffer)
		udp->receive_buffer = buffer;
	udp->sockets[index] = next;
	return 0;
fail:
	close(next.fd);
	return err;
}

void sr_udp_unbind(struct sr_udp *udp, unsigned index)
{
	if (udp->sockets[index].fd >= 0)
		close(udp->sockets[index].fd);
	udp->sockets[index].fd = -1;
}

unsigned sr_udp_receive_buffer(const struct sr_udp *udp)
{
	return udp->receive_buffer;
}

int sr_udp_run(struct sr_udp *udp, struct sr_nic *nic, uint64_t now)
{
	struct sr_held *held;
	int n = 0;

	if (!STAILQ_EMPTY(&udp->stuck))
		sr_udp_unstick(udp);
	if (udp->limited_until <= now)
		udp->limited_until = 0; /* what waits asks again; perhaps it is gone */
	while (!SLIST_EMPTY(&udp->held.packets) && (held = sr_held_take(&udp->held, now))) {
		if (held->rx) {
			sr_udp_deliver(nic, now, &held->path, held->data, held->len);
			n++;
		} else {
			sr_udp_send_held(udp, held);
		}
		free(held);
	}
	return n;
}

uint64_t sr_udp_deadline(const struct sr_udp *udp)
{
	const struct sr_held *held = SLIST_FIRST(&udp->held.packets);
	uint64_t due = held ? held->due : UINT64_MAX;

	return udp->limited_until && udp->limited_until < due ? udp->limited_until : due;
}

bool sr_udp_blocked(const struct sr_udp *udp)
{
	return !STAILQ_EMPTY(&udp->stuck);
}

int sr_udp_pollfds(const struct sr_udp *udp, struct pollfd *fds, bool in)
{
	const struct sr_stuck *stuck = STAILQ_FIRST(&udp->stuck);
	int n = 0;

	for (int i = 0; i < SR_GIDS; i++) {
		bool out = stuck && stuck->run.socket == i;

		if (udp->sockets[i].fd >= 0 && (in || out))
			fds[n++] = (struct pollfd) { udp->sockets[i].fd,
						     (in ? POLLIN : 0) | (out ? POLLOUT : 0), 0 };
	}
	return n;
}

const struct sr_wire_counters *sr_udp_counters(const struct sr_udp *udp)
{
	return &udp->counters;
}
