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
static atomic_uint sent, sent_by_nic;
static atomic_size_t last_bytes; /* of the last call that sent */
static unsigned last_own;        /* the number of the program's last one */

__attribute__((visibility("default"))) int sendmmsg(int fd, struct mmsghdr *messages, unsigned n,
						    int flags)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < n; i++)
		for (size_t k = 0; k < messages[i].msg_hdr.msg_iovlen; k++)
			bytes += messages[i].msg_hdr.msg_iov[k].iov_len;
	atomic_store(&last_bytes, bytes);
	atomic_fetch_add(&sent_by_nic, !program);
	if (program)
		last_own = atomic_fetch_add(&sent, 1) + 1;
	else
		atomic_fetch_add(&sent, 1);
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

/* Takes the next message. True: its acknowledgement waits, for nothing has been sent since the
 * program's last echo. */
static bool take_message(struct side *side, enum kind *kind)
{
	const unsigned before = last_own;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(side->cq, 1, &wc);
		CHECK(n >= 0 && (!n || wc.status == IBV_WC_SUCCESS));
	} while (!n || wc.opcode != IBV_WC_RECV);
	*kind = side->buf[RECEIVE_AT];
	side_post_recv(side, 2, RECEIVE_AT, LENGTH);
	return atomic_load(&sent) == before;
}

static void answer(struct side *side, bool waits)
{
	unsigned before = atomic_load(&sent), by_nic = atomic_load(&sent_by_nic);

	side_post_send(side, IBV_WR_SEND, 1, 0, LENGTH);
	if (!waits || atomic_load(&sent_by_nic) != by_nic)
		return;
	CHECK_INT(atomic_load(&sent), before + 1);
	CHECK_INT(atomic_load(&last_bytes), MESSAGE_BYTES + ACK_BYTES);
	with_packet++;
}

static void poll_again(struct side *side)
{
	unsigned before = atomic_load(&sent), by_nic = atomic_load(&sent_by_nic);
	struct ibv_wc wc;

	while (atomic_load(&sent) == before)
		CHECK(ibv_poll_cq(side->cq, 1, &wc) >= 0);
	CHECK_INT(atomic_load(&last_bytes), ACK_BYTES);
	with_poll += atomic_load(&sent_by_nic) == by_nic;
}

/* Waits for what the other end does when it has the acknowledgement. */
static void leave_to_thread(struct side *side, bool waits)
{
	unsigned by_program = atomic_load(&sent) - atomic_load(&sent_by_nic);
	char byte = 0;

	CHECK(read(side->fd, &byte, 1) == 1);
	CHECK_INT(atomic_load(&sent) - atomic_load(&sent_by_nic), by_program);
	with_thread += waits;
}

static void end_program(void)
{
	atomic_store(&ending, true);
	exit(0);
}

static void try_once(struct side *side, bool waits)
{
	char byte = 0;

	if (waits && with_poll < WANTED)
		poll_again(side);
	else if (waits && with_thread >= WANTED && with_packet >= WANTED)
		end_program();
	leave_to_thread(side, waits);
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
		enum kind kind;
		bool waits = take_message(&side, &kind);

		if (kind == ECHO)
			answer(&side, waits);
		else
			try_once(&side, waits);
	}
}

int main(void)
{
	side_isolate("127.149.0.0/24");
	side_run(ask, owe);
	return 0;
}
