/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two programs that poll and yield on one processor take their packets themselves: the NIC's
 * thread, which each packet wakes, learns that the program polls whenever it has the processor.
 *
 * Rounds of exchanges; in most of them nearly all packets are the program's own. Rounds that were
 * disturbed by other programs say nothing.
 */
#include "softroce/udp.h"
#include "tests/base/share.h"
#include "tests/softroce/front_side.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define LENGTH 8
#define EXCHANGES 200
#define LIMIT_NS UINT64_C(60000000000) /* then the machine is too busy */
#define WORK_NS 6000 /* of a program between two messages: it has not polled just now */
/* An exchange is two turns, each shorter than the NIC waits for the next poll. */
#define QUIET_NS 80000
#define QUIET_MIN 50 /* quiet rounds that are worth an opinion */

enum { RECEIVE_AT = 64 };

static const struct side_options options;
static _Thread_local bool program; /* and not a thread of the NIC's */
static atomic_uint own, by_nic;    /* packets taken */

__attribute__((visibility("default"))) int recvmmsg(int fd, struct mmsghdr *messages, unsigned n,
						    int flags, struct timespec *timeout)
{
	int taken = (int)syscall(SYS_recvmmsg, fd, messages, n, flags, timeout);

	if (taken > 0)
		atomic_fetch_add(program ? &own : &by_nic, (unsigned)taken);
	return taken;
}

static void use_one_processor(void)
{
	cpu_set_t all, one;

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all)) {
			CPU_SET(cpu, &one);
			break;
		}
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
}

static void await_completions(struct side *side, int n)
{
	while (n) {
		struct ibv_wc wc;
		int found = ibv_poll_cq(side->cq, 1, &wc);

		CHECK(found >= 0 && (!found || wc.status == IBV_WC_SUCCESS));
		n -= found;
		if (!found)
			sched_yield();
	}
}

static void do_work(void)
{
	uint64_t begun = sr_now();

	while (sr_now() - begun < WORK_NS)
		;
}

/* A message each way. One more receive is posted than there are messages on their way. */
static void exchange(struct side *side)
{
	do_work();
	side_post_recv(side, 2, RECEIVE_AT, LENGTH);
	side_post_send(side, IBV_WR_SEND, 1, 0, LENGTH);
	await_completions(side, 2);
}

static void run_round(struct side *side)
{
	for (int i = 0; i < EXCHANGES; i++)
		exchange(side);
}

/* The other end has a round's word before it begins the next one. */
static bool another_round(const struct side *side)
{
	char goes_on;

	CHECK(read(side->fd, &goes_on, 1) == 1);
	return goes_on;
}

static void begin_side(struct side *side, int fd)
{
	program = true;
	side_open(side, fd, &options);
	side_connect(side, &options);
	side_post_recv(side, 2, RECEIVE_AT, LENGTH);
	side_meet(side);
}

static void follow(int fd)
{
	struct side side;

	begin_side(&side, fd);
	while (another_round(&side))
		run_round(&side);
	side_meet(&side);
	side_close(&side);
}

/* Counts the quiet rounds, and those in which the program took its packets. */
static void judge_round(struct side *side, unsigned *quiet, unsigned *good)
{
	unsigned mine, nic;
	const char goes_on = true;
	uint64_t begun = sr_now();

	atomic_store(&own, 0);
	atomic_store(&by_nic, 0);
	CHECK(write(side->fd, &goes_on, 1) == 1);
	run_round(side);
	mine = atomic_load(&own);
	nic = atomic_load(&by_nic);
	if (sr_now() - begun >= (uint64_t)EXCHANGES * QUIET_NS)
		return;
	++*quiet;
	*good += nic * 10 < mine;
}

static void lead(int fd)
{
	unsigned quiet = 0, good = 0, rounds = 0;
	const uint64_t until = sr_now() + LIMIT_NS;
	const char over = false;
	struct side side;

	begin_side(&side, fd);
	while (quiet < QUIET_MIN && sr_now() < until) {
		rounds++;
		judge_round(&side, &quiet, &good);
	}
	CHECK(write(side.fd, &over, 1) == 1);
	printf("%u of %u quiet rounds; %u in all\n", good, quiet, rounds);
	side_meet(&side);
	side_close(&side);
	if (quiet < QUIET_MIN) {
		printf("machine too busy: an exchange took longer than %d us\n", QUIET_NS / 1000);
		exit(SHARE_BUSY_STATUS);
	}
	CHECK(good * 2 > quiet);
}

int main(void)
{
	use_one_processor();
	side_isolate("127.148.0.0/24");
	side_run(lead, follow);
	return 0;
}
