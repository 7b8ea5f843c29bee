/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP wire by itself, against a plain socket: runs are cut right, a socket that is full delays
 * and loses nothing, an interface that cannot segment turns the offload off, and what arrives
 * broken is counted and dropped.
 */
#include "softroce/icrc.h"
#include "softroce/settings.h"
#include "softroce/udp.h"
#include "tests/softroce/front_side.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static int fail_with; /* errno of the next sends; 0 = let them through */
static int fail_count;

/* In place of the C library's: the wire's calls come here. */
int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
	if (fail_count > 0) {
		fail_count--;
		errno = fail_with;
		return -1;
	}
	return syscall(SYS_sendmmsg, fd, msgs, n, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (fail_count > 0) {
		fail_count--;
		errno = fail_with;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, msg, flags);
}

static struct sr_faults faults;
static struct sr_udp *udp;
static struct sr_path path = { .ttl = 64 };
static int peer;
static uint8_t payload[8192];

static void wire_open(bool gso)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons(SR_UDP_PORT),
				       .sin_addr.s_addr = htonl(0x7fbe0002) };
	int err;

	udp = sr_udp_create(gso, 1, &faults, &err);
	CHECK(udp);
	sr_gid_from_ipv4(path.src, 0x7fbe0001);
	sr_gid_from_ipv4(path.dst, 0x7fbe0002);
	CHECK(!sr_udp_bind(udp, 0, path.src, 0));
	CHECK(sr_udp_receive_buffer(udp) > 0);
	peer = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(!bind(peer, (struct sockaddr *)&address, sizeof(address)));
}

static void wire_close(void)
{
	close(peer);
	sr_udp_destroy(udp);
}

/* Frame number `n` of `len` bytes of payload; the last byte of the header carries the number. */
static int frame_send(unsigned n, uint32_t len, bool stable)
{
	struct sr_frame frame = {
		.path = &path,
		.hdr_len = 16,
		.payload_len = len,
		.pad = -len & 3,
		.stable = stable,
		.iov_n = 2,
		.iov = { { payload + n, len / 2 }, { payload + n + len / 2, len - len / 2 } },
	};

	memset(frame.hdr, 0x11, 16);
	frame.hdr[4] = 0xab; /* the byte the ICRC leaves out */
	frame.hdr[15] = n;
	return sr_udp_wire_ops.send(udp, &frame);
}

/* The datagram with frame `n`: bytes, and the ICRC of an identification of 0 or, in a run, of
 * any. */
static void frame_check(unsigned n, uint32_t len, bool in_run)
{
	uint8_t got[9000];
	struct pollfd pfd = { .fd = peer, .events = POLLIN };
	struct sr_path sent = path;
	uint32_t pad = -len & 3, icrc, stored;
	ssize_t size;

	CHECK(poll(&pfd, 1, 60000) == 1);
	size = recv(peer, got, sizeof(got), 0);
	CHECK(size == (ssize_t)(16 + len + pad + 4));
	CHECK(got[0] == 0x11 && got[15] == n && !memcmp(got + 16, payload + n, len));
	sent.sport = SR_UDP_PORT;
	icrc = sr_icrc_begin(&sent, SR_UDP_PORT, 8 + size, 0, got, 16);
	icrc = sr_icrc_end(sr_icrc_update(icrc, got + 16, size - 20));
	memcpy(&stored, got + size - 4, 4);
	CHECK(in_run ? sr_icrc_matches_any_ipid(icrc, le32toh(stored), 8 + size)
		     : icrc == le32toh(stored));
}

static void frame_expect(unsigned n, uint32_t len)
{
	frame_check(n, len, true);
}

static void frame_expect_alone(unsigned n, uint32_t len)
{
	frame_check(n, len, false);
}

static void none_expected(void)
{
	struct pollfd pfd = { .fd = peer, .events = POLLIN };

	CHECK(poll(&pfd, 1, 20) == 0);
}

/* Sizes that begin, continue, end and overflow runs; copied and gathered payloads. */
static void send_runs(bool gso)
{
	static const uint32_t sizes[] = { 4096, 4096, 4096, 100, 4096, 1,    2,   3,
					  0,    0,    513,  513, 512,  4096, 4096 };
	const unsigned n = sizeof(sizes) / sizeof(sizes[0]);

	wire_open(gso);
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < n; i++)
			CHECK(!frame_send(round * 16 + i, sizes[i], i & 1));
		sr_udp_wire_ops.flush(udp);
		for (unsigned i = 0; i < n; i++)
			frame_expect(round * 16 + i, sizes[i]);
	}
	for (unsigned i = 0; i < 200; i++)
		CHECK(!frame_send(i, 8, true));
	sr_udp_wire_ops.flush(udp);
	for (unsigned i = 0; i < 200; i++)
		frame_expect(i, 8);
	CHECK(!sr_udp_counters(udp)->send_errors);
	wire_close();
}

static void full_socket(void)
{
	struct pollfd fds[SR_GIDS];

	wire_open(true);
	fail_with = EAGAIN;
	fail_count = 3;
	for (unsigned i = 0; i < 5; i++)
		CHECK(!frame_send(i, 1000, i & 1));
	CHECK(!frame_send(5, 40, true));
	CHECK(!frame_send(6, 4096, true));
	sr_udp_wire_ops.flush(udp);
	CHECK(sr_udp_blocked(udp));
	memset(payload, 0xee, 100); /* what was to be sent has been copied */
	CHECK(sr_udp_pollfds(udp, fds, false) == 1 && fds[0].events == POLLOUT);
	none_expected();
	CHECK(frame_send(9, 10, true) == -EAGAIN);
	sr_udp_run(udp, NULL, sr_now()); /* still full */
	CHECK(sr_udp_blocked(udp) && fail_count == 0);
	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7;
	sr_udp_run(udp, NULL, sr_now());
	CHECK(!sr_udp_blocked(udp));
	CHECK(sr_udp_pollfds(udp, fds, false) == 0);
	for (unsigned i = 0; i < 5; i++)
		frame_expect(i, 1000);
	frame_expect(5, 40);
	frame_expect(6, 4096);
	CHECK(!frame_send(7, 10, true));
	sr_udp_wire_ops.flush(udp);
	frame_expect(7, 10);
	wire_close();
}

/*
 * The interface refuses segmentation, at once or when a socket that was full has room again: the
 * packets of the runs that were made go out one by one, in order, with the ICRC of packets by
 * themselves, and so do later ones.
 */
static void no_offload(bool full_first)
{
	static const uint32_t bytes[] = { 4096, 4096, 4096, 4096, 100, 1000, 1000, 1000 };

	wire_open(true);
	for (unsigned round = 0; round < 2; round++) {
		fail_with = full_first && !round ? EAGAIN : EIO;
		fail_count = !round;
		for (unsigned i = 0; i < 4; i++)
			CHECK(!frame_send(i, 4096, i & 1));
		CHECK(!frame_send(4, 100, true));
		for (unsigned i = 5; i < 8; i++)
			CHECK(!frame_send(i, 1000, i & 1));
		sr_udp_wire_ops.flush(udp);
		if (full_first && !round) {
			none_expected();
			fail_with = EIO;
			fail_count = 1;
			sr_udp_run(udp, NULL, sr_now());
		}
		for (unsigned i = 0; i < 8; i++)
			frame_expect_alone(i, bytes[i]);
		none_expected();
	}
	CHECK(!sr_udp_counters(udp)->send_errors && !sr_udp_blocked(udp));
	/* An address that is no longer ours. */
	sr_udp_unbind(udp, 0);
	CHECK(!frame_send(0, 8, true));
	CHECK(sr_udp_counters(udp)->send_errors == 1);
	wire_close();
}

static void received_broken(void)
{
	struct sr_nic_config config = { .name = "test",
					.active_mtu = IBV_MTU_4096,
					.wire_ops = &sr_udp_wire_ops };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(SR_UDP_PORT),
				  .sin_addr.s_addr = htonl(0x7fbe0001) };
	uint8_t packet[5000] = { 4, 0x40, 0xff, 0xff };
	static const size_t sizes[] = { 0, 1, 15, 16, 20, 100, 5000 };
	struct sr_nic *nic;
	int err;

	wire_open(true);
	config.wire = udp;
	memcpy(config.gid, path.src, 16);
	nic = sr_nic_create(&config, &err);
	CHECK(nic);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		CHECK(sendto(peer, packet, sizes[i], 0, (struct sockaddr *)&to, sizeof(to)) ==
		      (ssize_t)sizes[i]);
	CHECK(sr_udp_receive(udp, nic, sr_now()) == 0);
	CHECK(sr_udp_counters(udp)->runt == 3 && sr_udp_counters(udp)->bad_icrc == 4);
	sr_nic_destroy(nic);
	wire_close();
}

int main(void)
{
	for (unsigned i = 0; i < sizeof(payload); i++)
		payload[i] = i * 7;
	send_runs(true);
	send_runs(false);
	full_socket();
	no_offload(false);
	no_offload(true);
	received_broken();
	return 0;
}
