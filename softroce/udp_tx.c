/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * udp_tx.c - sending: frames become runs of equal packets, runs become few system calls
 *
 * The kernel gathers each packet from [header][payload][pad, ICRC]. Headers and trailers lie in an
 * arena, the ICRC of one packet next to the header of the following one, so a large packet costs
 * two pieces: payload, and trailer with the next header. Small payloads, and those that may change
 * before the kernel has read them, are copied into the arena too.
 *
 * A run is one message with UDP_SEGMENT: the kernel cuts it into packets of run->segment bytes. All
 * are of that size but the last, which may be shorter and ends the run. A run is handed over as
 * soon as it is full:
 * its payload, just read for the ICRC, is still in the cache, and the receiver can begin.
 *
 * The ICRC covers the IPv4 identification, which we do not choose: the kernel writes 0 for a packet
 * that must not be fragmented and is sent from an unconnected socket, and k for the k-th packet of
 * a run.
 */
#include "softroce/devices.h"
#include "softroce/icrc.h"
#include "softroce/udp_wire.h"

#include <endian.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define COPY_MAX 512  /* payloads up to this are cheaper to copy than to gather */
#define TRAILER_MAX 7 /* pad and ICRC */
#define UDP_HEADER 8
#define HAND_OVER 56000 /* bytes queued that are worth a system call */

/* ---- handing over to the kernel ---- */

static void control_add(struct msghdr *msg, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *cmsg =
		(struct cmsghdr *)((uint8_t *)msg->msg_control + msg->msg_controllen);

	cmsg->cmsg_level = level;
	cmsg->cmsg_type = type;
	cmsg->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(cmsg), value, len);
	msg->msg_controllen += CMSG_SPACE(len);
}

static void message_fill(struct sr_udp *udp, const struct sr_run *run, struct msghdr *msg,
			 union sr_address *name, void *control)
{
	uint16_t segment = run->segment;

	memset(msg, 0, sizeof(*msg));
	msg->msg_namelen = sr_udp_address(&udp->sockets[run->socket], run->dst, name);
	msg->msg_name = name;
	msg->msg_control = control;
	if (run->segments > 1)
		control_add(msg, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (run->tclass) {
		int tclass = run->tclass;
		bool ipv4 = name->sa.sa_family == AF_INET;

		control_add(msg, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_TOS : IPV6_TCLASS,
			    &tclass, sizeof(tclass));
	}
	if (!msg->msg_controllen)
		msg->msg_control = NULL;
}

/* EIO and EINVAL say that the interface cannot segment (it has no checksum offload, for one):
 * packets go one by one from now on. Any other message that is refused is lost, as on any wire. */
static bool disable_segmentation(struct sr_udp *udp, const struct sr_run *run, int err)
{
	if (run->segments < 2 || (err != EIO && err != EINVAL))
		return false;
	udp->gso = false;
	return true;
}

static void run_stick(struct sr_udp *udp, const struct sr_run *run)
{
	struct sr_stuck *stuck = malloc(sizeof(*stuck) + run->bytes);
	size_t n = 0;

	if (!stuck)
		return;
	stuck->run = *run;
	for (unsigned i = 0; i < run->iov_n; i++) {
		const struct iovec *iov = &udp->iov[run->iov + i];

		memcpy(stuck->data + n, iov->iov_base, iov->iov_len);
		n += iov->iov_len;
	}
	STAILQ_INSERT_TAIL(&udp->stuck, stuck, link);
}

/* A packet of a run by itself. Its identification was its place in the run, and is 0 then. */
static struct sr_stuck *stuck_packet(const struct sr_stuck *whole, uint32_t at, uint16_t place)
{
	uint32_t left = whole->run.bytes - at,
		 bytes = left < whole->run.segment ? left : whole->run.segment, icrc;
	struct sr_stuck *one = malloc(sizeof(*one) + bytes);
	uint8_t *trailer;

	if (!one)
		return NULL;
	one->run = whole->run;
	one->run.segment = one->run.bytes = bytes;
	one->run.segments = 1;
	memcpy(one->data, whole->data + at, bytes);
	trailer = one->data + bytes - SR_ICRC_LEN;
	if (sr_gid_ipv4(whole->run.dst)) {
		memcpy(&icrc, trailer, sizeof(icrc));
		icrc = htole32(
			sr_icrc_change_ipid(le32toh(icrc), (uint16_t)(UDP_HEADER + bytes), place));
		memcpy(trailer, &icrc, sizeof(icrc));
	}
	return one;
}

/* The first run that waits becomes packets, in its place. */
static void stuck_split(struct sr_udp *udp)
{
	struct sr_stuck *whole = STAILQ_FIRST(&udp->stuck), *before = whole;
	uint16_t place = 0;

	for (uint32_t at = 0; at < whole->run.bytes; at += whole->run.segment, place++) {
		struct sr_stuck *one = stuck_packet(whole, at, place);

		if (!one) {
			udp->counters.send_errors++;
			continue;
		}
		STAILQ_INSERT_AFTER(&udp->stuck, before, one, link);
		before = one;
	}
	STAILQ_REMOVE_HEAD(&udp->stuck, link);
	free(whole);
}

bool sr_udp_unstick(struct sr_udp *udp)
{
	struct sr_stuck *stuck;

	while ((stuck = STAILQ_FIRST(&udp->stuck))) {
		struct iovec iov = { stuck->data, stuck->run.bytes };
		uint8_t control[SR_CONTROL_SPACE] __attribute__((aligned(8)));
		union sr_address name;
		struct msghdr msg;

		if (!udp->gso && stuck->run.segments > 1) {
			stuck_split(udp);
			continue;
		}
		message_fill(udp, &stuck->run, &msg, &name, control);
		msg.msg_iov = &iov;
		msg.msg_iovlen = 1;
		udp->counters.syscalls_sent++;
		if (sendmsg(udp->sockets[stuck->run.socket].fd, &msg, MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS)
				return false;
			if (disable_segmentation(udp, &stuck->run, errno))
				continue;
			udp->counters.send_errors++;
		}
		STAILQ_REMOVE_HEAD(&udp->stuck, link);
		free(stuck);
	}
	return true;
}

/* Runs [from, to) go through one socket. */
static void runs_send(struct sr_udp *udp, unsigned from, unsigned to)
{
	int fd = udp->sockets[udp->runs[from].socket].fd;

	while (from < to) {
		int n = sendmmsg(fd, &udp->messages[from], to - from, MSG_DONTWAIT);

		udp->counters.syscalls_sent++;
		if (n > 0) {
			from += n;
		} else if (errno == EAGAIN || errno == ENOBUFS ||
			   disable_segmentation(udp, &udp->runs[from], errno)) {
			break;
		} else if (errno != EINTR) {
			udp->counters.send_errors++;
			from++;
		}
	}
	for (; from < to; from++)
		run_stick(udp, &udp->runs[from]);
}

static void hand_over(struct sr_udp *udp)
{
	unsigned from = 0;

	for (unsigned i = 0; i < udp->runs_n; i++) {
		struct sr_run *run = &udp->runs[i];
		struct msghdr *msg = &udp->messages[i].msg_hdr;

		message_fill(udp, run, msg, &udp->names[i], udp->control[i]);
		msg->msg_iov = &udp->iov[run->iov];
		msg->msg_iovlen = run->iov_n;
	}
	for (unsigned i = 1; i <= udp->runs_n; i++)
		if (i == udp->runs_n || udp->runs[i].socket != udp->runs[from].socket) {
			runs_send(udp, from, i);
			from = i;
		}
	udp->runs_n = udp->iov_n = udp->arena_n = udp->queued = 0;
	if (!STAILQ_EMPTY(&udp->stuck) && !udp->gso)
		sr_udp_unstick(udp);
}

/* ---- building runs ---- */

static int socket_of(const struct sr_udp *udp, const uint8_t gid[16])
{
	for (int i = 0; i < SR_GIDS; i++)
		if (udp->sockets[i].fd >= 0 && !memcmp(udp->sockets[i].gid, gid, 16))
			return i;
	return -1;
}

/* The run that can take a packet of `bytes`: the last one, or a new one. */
static struct sr_run *run_for(struct sr_udp *udp, int socket, const struct sr_path *path,
			      uint32_t bytes)
{
	struct sr_run *run = udp->runs_n ? &udp->runs[udp->runs_n - 1] : NULL;

	if (run && udp->gso && !run->closed && run->socket == socket && bytes <= run->segment &&
	    run->segments < SR_TX_SEGMENTS && run->bytes + bytes <= SR_TX_BYTES &&
	    run->tclass == path->tclass && !memcmp(run->dst, path->dst, 16))
		return run;
	if (udp->queued >= HAND_OVER || udp->runs_n == SR_TX_MSGS)
		hand_over(udp);
	run = &udp->runs[udp->runs_n++];
	*run = (struct sr_run) {
		.socket = socket, .tclass = path->tclass, .segment = bytes, .iov = udp->iov_n
	};
	memcpy(run->dst, path->dst, 16);
	return run;
}

/* Append bytes to the run, to its last piece when they follow it in memory. */
static void piece_add(struct sr_udp *udp, struct sr_run *run, const void *base, size_t len)
{
	struct iovec *last = run->iov_n ? &udp->iov[run->iov + run->iov_n - 1] : NULL;

	if (last && (uint8_t *)last->iov_base + last->iov_len == base) {
		last->iov_len += len;
		return;
	}
	udp->iov[udp->iov_n++] = (struct iovec) { (void *)base, len };
	run->iov_n++;
}

static uint8_t *arena_take(struct sr_udp *udp, size_t len)
{
	uint8_t *at = udp->arena + udp->arena_n;

	udp->arena_n += len;
	return at;
}

static void payload_copy(uint8_t *to, const struct sr_frame *frame)
{
	for (unsigned i = 0; i < frame->iov_n; i++) {
		memcpy(to, frame->iov[i].iov_base, frame->iov[i].iov_len);
		to += frame->iov[i].iov_len;
	}
}

/* Pad and ICRC at `at`; `place` is the IPv4 identification the kernel will write. */
static void trailer_write(uint8_t *at, const struct sr_frame *frame, const struct iovec *payload,
			  unsigned payload_n, unsigned place)
{
	struct sr_path path = *frame->path;
	uint32_t len = frame->hdr_len + frame->payload_len + frame->pad + SR_ICRC_LEN, icrc;

	path.sport = SR_UDP_PORT; /* our sockets send from the port they receive on */
	memset(at, 0, frame->pad);
	icrc = sr_icrc_begin(&path, SR_UDP_PORT, UDP_HEADER + len, place, frame->hdr,
			     frame->hdr_len);
	icrc = sr_icrc_updatev(icrc, payload, payload_n);
	icrc = htole32(sr_icrc_end(sr_icrc_update(icrc, at, frame->pad)));
	memcpy(at + frame->pad, &icrc, sizeof(icrc));
}

static void frame_queue(struct sr_udp *udp, int socket, const struct sr_frame *frame)
{
	bool copy = !frame->stable || frame->payload_len <= COPY_MAX;
	uint32_t bytes = frame->hdr_len + frame->payload_len + frame->pad + SR_ICRC_LEN;
	struct iovec one = { .iov_len = frame->payload_len };
	const struct iovec *payload = frame->iov;
	unsigned payload_n = frame->iov_n;
	struct sr_run *run;
	uint8_t *hdr;

	if (udp->arena_n + frame->hdr_len + (copy ? frame->payload_len : 0) + TRAILER_MAX >
		    SR_TX_ARENA ||
	    udp->iov_n + frame->iov_n + 2 > SR_TX_IOVS)
		hand_over(udp);
	run = run_for(udp, socket, frame->path, bytes);
	hdr = arena_take(udp, frame->hdr_len + (copy ? frame->payload_len : 0));
	memcpy(hdr, frame->hdr, frame->hdr_len);
	if (copy) {
		payload_copy(hdr + frame->hdr_len, frame);
		one.iov_base = hdr + frame->hdr_len;
		payload = &one;
		payload_n = 1;
	}
	piece_add(udp, run, hdr, frame->hdr_len);
	for (unsigned i = 0; i < payload_n; i++)
		if (payload[i].iov_len)
			piece_add(udp, run, payload[i].iov_base, payload[i].iov_len);
	hdr = arena_take(udp, frame->pad + SR_ICRC_LEN);
	trailer_write(hdr, frame, payload, payload_n, run->segments);
	piece_add(udp, run, hdr, frame->pad + SR_ICRC_LEN);
	run->bytes += bytes;
	run->segments++;
	run->closed = bytes < run->segment;
	udp->queued += bytes;
}

/* ---- faults ---- */

static void frame_hold(struct sr_udp *udp, const struct sr_frame *frame, bool reordered,
		       uint64_t due)
{
	uint32_t len = frame->hdr_len + frame->payload_len + frame->pad + SR_ICRC_LEN;
	struct sr_held *held = sr_held_add(&udp->held, frame->path, false, reordered, due, len);
	struct iovec payload;

	if (!held)
		return;
	memcpy(held->data, frame->hdr, frame->hdr_len);
	payload_copy(held->data + frame->hdr_len, frame);
	payload = (struct iovec) { held->data + frame->hdr_len, frame->payload_len };
	trailer_write(held->data + frame->hdr_len + frame->payload_len, frame, &payload, 1, 0);
	udp->counters.delayed_by_fault++;
}

void sr_udp_send_held(struct sr_udp *udp, const struct sr_held *held)
{
	int socket = socket_of(udp, held->path.src);
	union sr_address name;
	socklen_t len;

	if (socket < 0)
		return;
	len = sr_udp_address(&udp->sockets[socket], held->path.dst, &name);
	udp->counters.syscalls_sent++;
	if (sendto(udp->sockets[socket].fd, held->data, held->len, MSG_DONTWAIT, &name.sa, len) < 0)
		udp->counters.send_errors++;
}

static void frame_send_faulty(struct sr_udp *udp, int socket, const struct sr_frame *frame)
{
	struct sr_verdict verdict = sr_faults_decide(&udp->faults->tx, &udp->rng);
	uint64_t delay[2] = { verdict.delay_ns, verdict.delay2_ns };

	if (!verdict.copies)
		udp->counters.lost_by_fault++;
	for (int i = 0; i < verdict.copies; i++) {
		if (delay[i])
			frame_hold(udp, frame, verdict.reordered && !i, sr_now() + delay[i]);
		else
			frame_queue(udp, socket, frame);
	}
}

/* ---- what the engine calls ---- */

/* May a packet leave now? When not, the worker comes back at limited_until. */
static bool limit_take(struct sr_udp *udp, const struct sr_frame *frame)
{
	uint32_t bytes = frame->hdr_len + frame->payload_len + frame->pad + SR_ICRC_LEN;
	uint64_t now = sr_now(), when, shared = udp->upstream ? sr_limit_when(udp->upstream) : 0;

	atomic_store_explicit(&udp->own.rate, udp->faults->rate ? udp->faults->rate : udp->rate,
			      memory_order_relaxed);
	when = sr_limit_room(&udp->own, udp->upstream ? SR_LIMIT_QUEUE : 0);
	when = when > shared ? when : shared;
	udp->limited_until = when > now ? when : 0;
	if (udp->limited_until) {
		udp->due = when;
		udp->refused = true;
		return false;
	}
	when = sr_limit_since(udp->due, now);
	sr_limit_charge(&udp->own, bytes, when);
	if (udp->upstream)
		sr_limit_charge(udp->upstream, bytes, when);
	return true;
}

static int wire_send(void *wire, const struct sr_frame *frame)
{
	struct sr_udp *udp = wire;
	int socket = socket_of(udp, frame->path->src);

	if (!STAILQ_EMPTY(&udp->stuck) && !sr_udp_unstick(udp))
		return -EAGAIN;
	if ((udp->rate || udp->upstream || udp->faults->rate) && !limit_take(udp, frame))
		return -EAGAIN;
	if (socket < 0) {
		udp->counters.send_errors++; /* the address is gone: as if the packet were lost */
		return 0;
	}
	if (sr_faults_any(&udp->faults->tx))
		frame_send_faulty(udp, socket, frame);
	else
		frame_queue(udp, socket, frame);
	return 0;
}

static void wire_flush(void *wire)
{
	struct sr_udp *udp = wire;

	if (udp->runs_n)
		hand_over(udp);
	if (!udp->refused)
		udp->due = 0; /* all that waited is gone */
	udp->refused = false;
}

const struct sr_wire_ops sr_udp_wire_ops = {
	.send = wire_send,
	.flush = wire_flush,
};
