/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that polls gets a small message before its acknowledgement has gone. That goes with
 * what the program sends next, in the same system call; when it polls again; from the NIC's thread
 * when it does neither; and when it ends.
 *
 * The calls that send are this program's own and count. No queue pair asks a second time.
 */
#include "tests/softroce/front_side.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define LENGTH 8
#define MESSAGE_BYTES (12 + LENGTH + 4) /* BTH, payload, ICRC */
#define ACK_BYTES (12 + 4 + 4)          /* BTH, AETH, ICRC */
#define ECHOES 32                       /* before each trial: the NIC's thread goes away */
#define TRIALS_MAX 2000
#define WANTED 3
#define LIMIT_MS 60000 /* nothing here takes so long, however busy the machine */

enum { RECEIVE_AT = 64 };
enum kind { ECHO, TRIAL };

static const struct side_options options = { .timeout = 31 };
static _Thread_local bool program; /* and not a thread of the NIC's */
static atomic_uint by_nic;         /* calls that sent, of the NIC's threads */
/* The program's own: how many, bytes of the last one, and what by_nic was then. */
static unsigned own, own_bytes, nic_at_own;

__attribute__((visibility("default"))) int sendmmsg(int fd, struct mmsghdr *messages, unsigned n,
						    int flags)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		for (size_t k = 0; k < messages[i].msg_hdr.msg_iovlen; k++)
			bytes += messages[i].msg_hdr.msg_iov[k].iov_len;
	if (program) {
		own++;
		own_bytes = (unsigned)bytes;
		nic_at_own = atomic_load(&by_nic);
	} else {
		atomic_fetch_add(&by_nic, 1);
	}
	return (int)syscall(SYS_sendmmsg, fd, messages, n, flags);
}

static atomic_bool ending; /* the NIC's thread does nothing any more */

__attribute__((visibility("default"))) int ppoll(struct pollfd *fds, nfds_t n,
						 const struct timespec *timeout,
						 const sigset_t *mask)
{
	struct timespec left = timeout ? *timeout : (struct timespec) { 0 };
	int result =
		(int)syscall(SYS_ppoll, fds, n, timeout ? &left : NULL, mask, sizeof(uint64_t));

	while (!program && atomic_load(&ending))
		pause();
	return result;
}

/* ---- the end that asks ---- */

static void send_kind(struct side *side, enum kind kind)
{
	side->buf[0] = (unsigned char)kind;
	side_post_send(side, IBV_WR_SEND, 1, 0, LENGTH);
}

static void expect_completions(struct side *side, int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++)
		CHECK(side_wait(side, &wc, LIMIT_MS) && wc.status == IBV_WC_SUCCESS);
}

/* False when the other end has ended. */
static bool run_trial(struct side *side)
{
	char byte = 0;

	for (int i = 0; i < ECHOES; i++) {
		side_post_recv(side, 2, RECEIVE_AT, LENGTH);
		send_kind(side, ECHO);
		expect_completions(side, 2);
	}
	send_kind(side, TRIAL);
	expect_completions(side, 1);
	return send(side->fd, &byte, 1, MSG_NOSIGNAL) == 1 && read(side->fd, &byte, 1) == 1;
}

static void ask(int fd)
{
	struct side side;
	int trials = 0;

	side_open(&side, fd, &options);
	side_connect(&side, &options);
	side_meet(&side);
	while (run_trial(&side))
		CHECK(++trials < TRIALS_MAX);
	side_close(&side);
}

/* ---- the end whose acknowledgements wait ---- */

static int with_packet, with_poll, with_thread;

struct message {
	enum kind kind;
	bool waits;   /* its acknowledgement: nothing has been sent since the program's last echo */
	unsigned nic; /* what by_nic has been since */
};

static struct message take_message(struct side *side)
{
	struct message m = { .nic = nic_at_own };
	const unsigned before = own;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(side->cq, 1, &wc);
		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
	} while (!n || wc.opcode != IBV_WC_RECV);
	m.kind = side->buf[RECEIVE_AT];
	side_post_recv(side, 2, RECEIVE_AT, LENGTH);
	m.waits = own == before && atomic_load(&by_nic) == m.nic;
	return m;
}

static void answer(struct side *side, const struct message *m)
{
	const unsigned before = own;

	side_post_send(side, IBV_WR_SEND, 1, 0, LENGTH);
	if (!m->waits || atomic_load(&by_nic) != m->nic)
		return;
	CHECK_INT(own, before + 1);
	CHECK_INT(own_bytes, MESSAGE_BYTES + ACK_BYTES);
	with_packet++;
}

static void poll_again(struct side *side, const struct message *m)
{
	const unsigned before = own;
	struct ibv_wc wc;

	while (own == before && atomic_load(&by_nic) == m->nic)
		CHECK(ibv_poll_cq(side->cq, 1, &wc) >= 0);
	if (own == before)
		return; /* the NIC's thread was quicker */
	CHECK_INT(own_bytes, ACK_BYTES);
	with_poll++;
}

/* Waits for what the other end does when it has the acknowledgement. */
static void leave_to_thread(struct side *side, const struct message *m)
{
	const unsigned before = own;
	char byte = 0;

	CHECK(read(side->fd, &byte, 1) == 1);
	CHECK_INT(own, before);
	with_thread += m->waits;
}

static void end_program(void)
{
	atomic_store(&ending, true);
	exit(0);
}

static void try_once(struct side *side, const struct message *m)
{
	char byte = 0;

	if (m->waits && with_poll < WANTED)
		poll_again(side, m);
	else if (m->waits && with_thread >= WANTED && with_packet >= WANTED)
		end_program();
	leave_to_thread(side, m);
	CHECK(write(side->fd, &byte, 1) == 1);
}

static void owe(int fd)
{
	struct side side;

	program = true;
	side_open(&side, fd, &options);
	side_connect(&side, &options);
	side_post_recv(&side, 2, RECEIVE_AT, LENGTH);
	side_meet(&side);
	for (;;) {
		struct message m = take_message(&side);

		if (m.kind == ECHO)
			answer(&side, &m);
		else
			try_once(&side, &m);
	}
}

int main(void)
{
	side_isolate("127.149.0.0/24");
	side_run(ask, owe);
	return 0;
}
