/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_rx.c - receiving: few system calls, each bringing runs of packets that the kernel has left
 * together
 */
#include "softroce/devices.h"
#include "softroce/icrc.h"
#include "softroce/udp_wire.h"

#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define ROUNDS_MAX 4 /* system calls per socket before somebody else gets the lock */
#define UDP_HEADER 8
#define BTH_LEN 12
#define PACKET_MIN (BTH_LEN + SR_ICRC_LEN)

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define THREAD_SANITIZER
#endif

#ifdef THREAD_SANITIZER
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

void sr_udp_deliver(struct sr_nic *nic, uint64_t now, const struct sr_path *path,
		    const void *packet, uint32_t len)
{
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
	sr_nic_receive(nic, now, path, packet, len);
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
}
#else
void sr_udp_deliver(struct sr_nic *nic, uint64_t now, const struct sr_path *path,
		    const void *packet, uint32_t len)
{
	sr_nic_receive(nic, now, path, packet, len);
}
#endif

static void sender_gid(const union sr_address *name, uint8_t gid[16])
{
	if (name->sa.sa_family == AF_INET)
		sr_gid_from_ipv4(gid, ntohl(name->in.sin_addr.s_addr));
	else
		memcpy(gid, &name->in6.sin6_addr, 16);
}

static uint16_t sender_port(const union sr_address *name)
{
	return ntohs(name->sa.sa_family == AF_INET ? name->in.sin_port : name->in6.sin6_port);
}

static void packet_hold(struct sr_udp *udp, const struct sr_path *path, bool reordered,
			uint64_t due, const uint8_t *data, uint32_t len)
{
	struct sr_held *held = sr_held_add(&udp->held, path, true, reordered, due, len);

	if (!held)
		return;
	memcpy(held->data, data, len);
	udp->counters.delayed_by_fault++;
}

static void packet_receive_faulty(struct sr_udp *udp, struct sr_nic *nic, uint64_t now,
				  const struct sr_path *path, const uint8_t *data, uint32_t len)
{
	struct sr_verdict verdict = sr_faults_decide(&udp->faults->rx, &udp->rng);
	uint64_t delay[2] = { verdict.delay_ns, verdict.delay2_ns };

	if (!verdict.copies)
		udp->counters.lost_by_fault++;
	for (int i = 0; i < verdict.copies; i++) {
		if (delay[i])
			packet_hold(udp, path, verdict.reordered && !i, now + delay[i], data, len);
		else
			sr_udp_deliver(nic, now, path, data, len);
	}
}

/*
 * `path` is from our side. The packet's place in its run is the likely identification; any other
 * that fits will do.
 */
static bool icrc_right(const struct sr_path *path, const uint8_t *data, uint32_t len,
		       uint16_t place)
{
	struct sr_path sent = *path;
	uint16_t udp_len = UDP_HEADER + len;
	uint32_t body = len - SR_ICRC_LEN, hdr = body <= SR_HDR_MAX ? body : BTH_LEN, icrc, got;

	memcpy(sent.src, path->dst, sizeof(sent.src));
	memcpy(sent.dst, path->src, sizeof(sent.dst));
	memcpy(&got, data + body, sizeof(got));
	icrc = sr_icrc_begin(&sent, SR_UDP_PORT, udp_len, place, data, hdr);
	icrc = sr_icrc_end(sr_icrc_update(icrc, data + hdr, body - hdr));
	if (icrc == le32toh(got))
		return true;
	return sr_gid_ipv4(sent.dst) &&
	       sr_icrc_matches_any_ipid(sr_icrc_change_ipid(icrc, udp_len, place), le32toh(got),
					udp_len);
}

/*
 * `place`: of the packet in its run, the sender's IPv4 identification if nobody cut the run in
 * between.
 */
static int packet_receive(struct sr_udp *udp, struct sr_nic *nic, uint64_t now,
			  const struct sr_path *path, const uint8_t *data, uint32_t len,
			  unsigned place)
{
	if (len < PACKET_MIN) {
		udp->counters.runt++;
		return 0;
	}
	if (!icrc_right(path, data, len, place)) {
		udp->counters.bad_icrc++;
		return 0;
	}
	len -= SR_ICRC_LEN;
	if (sr_faults_any(&udp->faults->rx))
		packet_receive_faulty(udp, nic, now, path, data, len);
	else
		sr_udp_deliver(nic, now, path, data, len);
	return 1;
}

/* Size of the packets in a message: all but the last have it. */
static uint32_t segment_size(struct msghdr *msg, uint32_t len)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg))
		if (cmsg->cmsg_level == IPPROTO_UDP && cmsg->cmsg_type == UDP_GRO) {
			int size;

			memcpy(&size, CMSG_DATA(cmsg), sizeof(size));
			if (size > 0)
				return size;
		}
	return len;
}

static int message_receive(struct sr_udp *udp, struct sr_nic *nic, uint64_t now,
			   const struct sr_socket *socket, unsigned index)
{
	struct mmsghdr *message = &udp->rx_messages[index];
	const uint8_t *data = udp->rx_iov[index].iov_base;
	uint32_t len = message->msg_len, segment = segment_size(&message->msg_hdr, len);
	struct sr_path path = { .ttl = 64, .sport = sender_port(&udp->rx_names[index]) };
	unsigned place = 0;
	int n = 0;

	memcpy(path.src, socket->gid, 16);
	sender_gid(&udp->rx_names[index], path.dst);
	if (!len)
		udp->counters.runt++;
	for (uint32_t at = 0; at < len; at += segment)
		n += packet_receive(udp, nic, now, &path, data + at,
				    len - at < segment ? len - at : segment, place++);
	return n;
}

static void messages_prepare(struct sr_udp *udp, unsigned n, uint32_t size)
{
	for (unsigned i = 0; i < n; i++) {
		struct msghdr *msg = &udp->rx_messages[i].msg_hdr;

		udp->rx_iov[i] = (struct iovec) { udp->rx_pool + (size_t)i * size, size };
		memset(msg, 0, sizeof(*msg));
		msg->msg_name = &udp->rx_names[i];
		msg->msg_namelen = sizeof(udp->rx_names[i]);
		msg->msg_iov = &udp->rx_iov[i];
		msg->msg_iovlen = 1;
		msg->msg_control = udp->rx_control[i];
		msg->msg_controllen = SR_CONTROL_SPACE;
	}
}

static int socket_receive(struct sr_udp *udp, struct sr_nic *nic, uint64_t now,
			  const struct sr_socket *socket)
{
	uint32_t size = udp->gso ? SR_RX_GRO_BUFFER : SR_RX_BUFFER;
	unsigned batch = SR_RX_POOL / size;
	int total = 0;

	for (int round = 0; round < ROUNDS_MAX; round++) {
		int n;

		messages_prepare(udp, batch, size);
		n = recvmmsg(socket->fd, udp->rx_messages, batch, MSG_DONTWAIT, NULL);
		udp->counters.syscalls_received++;
		for (int i = 0; i < n; i++)
			total += message_receive(udp, nic, now, socket, i);
		if (n < (int)batch)
			break;
	}
	return total;
}

int sr_udp_receive(struct sr_udp *udp, struct sr_nic *nic, uint64_t now)
{
	int total = 0;

	for (int i = 0; i < SR_GIDS; i++)
		if (udp->sockets[i].fd >= 0)
			total += socket_receive(udp, nic, now, &udp->sockets[i]);
	return total;
}
