/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which a NIC's stores reach a program's memory.
 *
 * A program may poll any aligned word of memory that a peer writes and then use what stands before
 * it: NCCL's LL128 protocol polls the last word of each 128-byte line. So what has been placed is a
 * beginning of the payload at every moment, and each aligned word arrives whole. The test does not
 * wait for a reader to meet the bad moment. It executes the placing in a child, one instruction at
 * a time, and looks at the memory after each.
 */
#include "tests/softroce/engine_pair.h"

#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARGIN 256 /* on both sides of the payload: nothing may be written there */
#define MTU 4096
#define STEPS_MAX 1000000

/* What parent and child share. */
struct arena {
	uint8_t before[MARGIN];
	uint8_t payload[MTU + 64];
	uint8_t behind[MARGIN];
	bool placing; /* the next instructions place */
};

static struct arena *arena;
static uint8_t expected[MTU + 64];

static uint8_t expected_byte(uint32_t at)
{
	return (uint8_t)(at * 7 + at / 251 + 1);
}

/* The child stops here, before the first store. */
static void stop_before_placing(void *user, void *to, const void *from, uint32_t len)
{
	(void)user;
	(void)to;
	(void)from;
	(void)len;
	arena->placing = true;
	raise(SIGTRAP);
}

/* One buffer entry that is the payload's place in the arena. */
static struct ibv_sge register_arena(struct end *end, uint32_t skew, uint32_t len,
				     struct sr_mr **mr)
{
	int err;

	*mr = sr_mr_create(end->pd, arena, sizeof(*arena), (uintptr_t)arena, ALL_ACCESS, &err);
	CHECK_INT(err, 0);
	return (struct ibv_sge) { (uintptr_t)arena->payload + skew, len, sr_mr_lkey(*mr) };
}

static void post_write(struct pair *p, uint32_t skew, uint32_t len)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, len);
	struct ibv_send_wr wr = send_wr(IBV_WR_RDMA_WRITE, 1, &list, 1);
	struct sr_mr *mr;

	wr.wr.rdma.remote_addr = register_arena(&p->end[1], skew, len, &mr).addr;
	wr.wr.rdma.rkey = sr_mr_rkey(mr);
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

static void post_send(struct pair *p, uint32_t skew, uint32_t len)
{
	struct ibv_sge list = make_sge(&p->end[0], 0, len);
	struct ibv_send_wr wr = send_wr(IBV_WR_SEND, 1, &list, 1);
	struct ibv_recv_wr recv = { .num_sge = 1 }, *bad;
	struct ibv_sge to;
	struct sr_mr *mr;

	to = register_arena(&p->end[1], skew, len, &mr);
	recv.sg_list = &to;
	CHECK_INT(sr_qp_post_recv(p->end[1].qp, &recv, &bad), 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

static void post_read(struct pair *p, uint32_t skew, uint32_t len)
{
	struct ibv_send_wr wr;
	struct ibv_sge to;
	struct sr_mr *mr;

	memcpy(p->end[1].buf, expected, len);
	to = register_arena(&p->end[0], skew, len, &mr);
	wr = send_wr(IBV_WR_RDMA_READ, 1, &to, 1);
	set_remote_address(&wr, &p->end[1], 0);
	CHECK_INT(post_wr(p, 0, &wr), 0);
}

/* One way for a payload into memory. */
struct way {
	void (*post)(struct pair *p, uint32_t skew, uint32_t len);
	/* the engine calls placing() before the first store; else all from the post on is
	 * examined */
	bool announced;
};

static void move_one_packet(const struct way *way, uint32_t skew, uint32_t len)
{
	struct options options = default_options;
	struct pair p;

	options.mtu = IBV_MTU_4096;
	options.placing = way->announced ? stop_before_placing : NULL;
	pair_open(&p, &options);
	pair_connect(&p, IBV_QPS_RTS);
	memcpy(p.end[0].buf, expected, len);
	way->post(&p, skew, len);
	if (!way->announced)
		stop_before_placing(NULL, NULL, NULL, 0);
	expect_status(&p, p.end[0].scq, 1, IBV_WC_SUCCESS);
	pair_close(&p);
}

/* How many bytes of the payload have arrived, counted from its start. */
static uint32_t count_arrived(const uint8_t *at, uint32_t from, uint32_t len)
{
	while (from < len && at[from] == expected[from])
		from++;
	return from;
}

static void check_rest_untouched(const uint8_t *at, uint32_t arrived, uint32_t len)
{
	for (uint32_t i = arrived; i < len; i++) {
		uint8_t untouched = expected[i] ^ 0xff;

		if (at[i] == untouched)
			continue;
		fprintf(stderr, "byte %u of a payload of %u is there, byte %u is not\n", i, len,
			arrived);
		exit(1);
	}
}

/* `arrived` bytes are there: the border may not lie within an aligned word that the payload
 * fills. */
static void check_word_whole(const uint8_t *at, uint32_t arrived, uint32_t len)
{
	uint32_t inside = (uint32_t)((uintptr_t)(at + arrived) & 7);

	if (arrived == len || !inside || inside > arrived || len - arrived < 8 - inside)
		return;
	fprintf(stderr,
		"%u bytes of a payload of %u have arrived, and with them a part of an aligned "
		"word\n",
		arrived, len);
	exit(1);
}

static void wait_for_stop(pid_t child, int *status)
{
	CHECK(waitpid(child, status, 0) == child);
}

/* Execute the child up to its next instruction. */
static void step_child(pid_t child)
{
	int status;

	CHECK(!ptrace(PTRACE_SINGLESTEP, child, 0, 0));
	wait_for_stop(child, &status);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
}

static void prepare_arena(uint32_t skew, uint32_t len)
{
	memset(arena, 0, sizeof(*arena));
	for (uint32_t i = 0; i < len; i++)
		arena->payload[skew + i] = expected[i] ^ 0xff;
}

static void check_margins(uint32_t skew, uint32_t len)
{
	for (uint32_t i = 0; i < MARGIN; i++)
		CHECK(!arena->before[i] && !arena->behind[i]);
	for (uint32_t i = 0; i < sizeof(arena->payload); i++)
		CHECK((i >= skew && i < skew + len) || !arena->payload[i]);
}

/* One payload, moved by the child and examined by the parent. */
struct move {
	const struct way *way;
	uint32_t skew, len;
};

static void examine_move(pid_t child, const struct move *move)
{
	const uint8_t *at = arena->payload + move->skew;
	uint32_t arrived = 0, steps = 0;
	int status;

	CHECK(!ptrace(PTRACE_CONT, child, 0, 0));
	wait_for_stop(child, &status);
	CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && arena->placing);
	while (arrived < move->len) {
		CHECK(steps++ < STEPS_MAX);
		step_child(child);
		arrived = count_arrived(at, arrived, move->len);
		check_rest_untouched(at, arrived, move->len);
		check_word_whole(at, arrived, move->len);
	}
	check_margins(move->skew, move->len);
}

static void move_all(const struct move *moves, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		prepare_arena(moves[i].skew, moves[i].len);
		move_one_packet(moves[i].way, moves[i].skew, moves[i].len);
	}
}

static void examine_all(const struct move *moves, unsigned n)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		CHECK(!ptrace(PTRACE_TRACEME, 0, 0, 0));
		raise(SIGSTOP);
		move_all(moves, n);
		_exit(0);
	}
	wait_for_stop(child, &status);
	CHECK(!ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_EXITKILL));
	for (unsigned i = 0; i < n; i++)
		examine_move(child, &moves[i]);
	CHECK(!ptrace(PTRACE_CONT, child, 0, 0));
	wait_for_stop(child, &status);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

int main(void)
{
	static const uint32_t lengths[] = { 1, 7, 8, 9, 24, 128, 512, 513, 1000, 4096 };
	static const uint32_t skews[] = { 0, 1, 8, 15 };
	static const struct way write = { post_write, true }, send = { post_send, false },
				read = { post_read, false };
	struct move moves[LENGTH(lengths) * LENGTH(skews) + 4];
	unsigned n = 0;

	arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	CHECK(arena != MAP_FAILED);
	for (uint32_t i = 0; i < sizeof(expected); i++)
		expected[i] = expected_byte(i);
	for (unsigned i = 0; i < LENGTH(lengths); i++)
		for (unsigned k = 0; k < LENGTH(skews); k++)
			moves[n++] = (struct move) { &write, skews[k], lengths[i] };
	moves[n++] = (struct move) { &send, 0, 4096 };
	moves[n++] = (struct move) { &send, 24, 1000 };
	moves[n++] = (struct move) { &read, 0, 4096 };
	moves[n++] = (struct move) { &read, 24, 1000 };
	examine_all(moves, n);
	return 0;
}
