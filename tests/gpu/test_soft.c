/* SPDX-License-Identifier: BSD-3-Clause */
/* test_soft.c - the software NIC by itself, stepped by hand: doorbells, order, completions, errors,
 * flushes, incarnations */
#include "gpu/soft/nic.h"

#include "gpu/device/wqe.h"
#include "tests/ina/switch/named.h"

#include <errno.h>

#define NWQES 64

static struct soft_fabric *fabric;
static struct soft_nic *here, *there;
static struct soft_qp *qp, *peer;
static uint64_t *from, *to;
static uint32_t lkey, rkey;

static void connect_qp(struct soft_qp *q, struct soft_qp *other)
{
	CHECK_INT(soft_qp_modify(q, SOFT_RESET, 0, 0), 0);
	CHECK_INT(soft_qp_modify(q, SOFT_INIT, 0, 0), 0);
	CHECK_INT(soft_qp_modify(q, SOFT_RTR, other->nic->number, other->qpn), 0);
	CHECK_INT(soft_qp_modify(q, SOFT_RTS, 0, 0), 0);
}

static void start(uint32_t cq_log)
{
	struct soft_qp_attr attr = { .nwqes = NWQES, .cq_log = cq_log, .receive_log = 2 };

	fabric = soft_fabric_open(2, 1 << 20);
	CHECK(fabric);
	here = &fabric->nic[0];
	there = &fabric->nic[1];
	here->retry_ns = here->rnr_ns = 1000;
	qp = soft_qp_create(here, &attr);
	peer = soft_qp_create(there, &attr);
	from = soft_alloc(fabric, 4096);
	to = soft_alloc(fabric, 4096);
	CHECK(qp && peer && from && to);
	lkey = ha_gpu_be32(soft_mr_register(here, from, 4096, false));
	rkey = ha_gpu_be32(soft_mr_register(there, to, 4096, true));
	connect_qp(qp, peer);
	connect_qp(peer, qp);
}

static void stop(void)
{
	soft_fabric_close(fabric);
}

static void put_entry(uint16_t i, const struct ha_gpu_wqe *e)
{
	memcpy(qp->wqe + (i % NWQES) * 64, e, 64);
}

static void write_word(uint16_t i, unsigned word, unsigned flags)
{
	struct ha_gpu_wqe e;

	ha_gpu_wqe_write(&e, qp->qpn, i, flags);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[word], rkey);
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)&from[word], lkey, 8);
	put_entry(i, &e);
}

static void record(uint16_t upto)
{
	ha_gpu_store32(&qp->dbrec[HA_GPU_DBR_SEND], ha_gpu_be32(upto));
}

static void bell(uint16_t upto)
{
	uint64_t first;

	memcpy(&first, qp->wqe + ((upto - 1) % NWQES) * 64, 8);
	ha_gpu_mmio(qp->bf, first);
}

static void ring(uint16_t upto)
{
	record(upto);
	bell(upto);
}

static void run(void)
{
	for (unsigned i = 0; i < 1000; i++)
		soft_nic_step(here);
}

static uint64_t tail_of(const struct soft_cq *cq, unsigned i)
{
	return ha_gpu_load((const uint64_t *)(cq->cqe + 64 * i + HA_GPU_CQE_QPN));
}

static void expect_cqe(unsigned i, unsigned opcode, unsigned counter, unsigned syndrome)
{
	uint64_t t = tail_of(&qp->send, i);

	CHECK_INT(ha_gpu_cqe_opcode(t), opcode);
	CHECK_INT(ha_gpu_cqe_counter(t), counter);
	CHECK_INT(qp->send.cqe[64 * i + HA_GPU_CQE_SYNDROME], syndrome);
}

static void doorbells(void)
{
	start(3);
	from[1] = 11;
	write_word(0, 1, HA_GPU_WQE_SIGNALED);
	run();
	CHECK_INT(to[1], 0); /* nothing said */
	record(1);
	run();
	CHECK_INT(to[1], 0); /* the record alone */
	bell(1);
	run();
	CHECK_INT(to[1], 11);
	expect_cqe(0, HA_GPU_CQE_REQ, 0, 0);
	from[2] = 12;
	write_word(1, 2, 0);
	bell(2);
	run();
	CHECK_INT(to[2], 0); /* the register alone: the record has nothing new */
	stop();
}

/* The owner bit turns with every round; unsignalled entries complete silently. */
static void owner_bit(void)
{
	start(2);
	for (uint16_t i = 0; i < 40; i++) {
		write_word(i, 3, i & 1 ? HA_GPU_WQE_SIGNALED : 0);
		ring((uint16_t)(i + 1));
		run();
		if (i & 1) {
			unsigned n = i / 2u;

			expect_cqe(n % 4, HA_GPU_CQE_REQ, i, 0);
			CHECK_INT(ha_gpu_cqe_owner(tail_of(&qp->send, n % 4)), n / 4 & 1);
			ha_gpu_store32(qp->send.dbrec, ha_gpu_be32(n + 1));
		}
	}
	stop();
}

static void overrun(void)
{
	start(2);
	for (uint16_t i = 0; i < 6; i++)
		write_word(i, i, HA_GPU_WQE_SIGNALED);
	ring(6);
	run();
	for (unsigned i = 0; i < 4; i++)
		expect_cqe(i, HA_GPU_CQE_REQ, i, 0); /* not overwritten */
	CHECK_INT(qp->state, SOFT_ERR);
	stop();
}

/* Five entries; the third fails with `syndrome`: two good ones, one error, two flushed, signalled
 * or not. */
static void third_fails(const struct ha_gpu_wqe *third, unsigned syndrome)
{
	for (uint16_t i = 0; i < 5; i++) {
		from[i] = 100 + i;
		write_word(i, i, i < 2 ? HA_GPU_WQE_SIGNALED : 0);
	}
	put_entry(2, third);
	ring(5);
	for (uint64_t end = ha_gpu_now() + 20000000; ha_gpu_now() < end && qp->ci != 5;)
		run();
	expect_cqe(0, HA_GPU_CQE_REQ, 0, 0);
	expect_cqe(1, HA_GPU_CQE_REQ, 1, 0);
	expect_cqe(2, HA_GPU_CQE_REQ_ERR, 2, syndrome);
	expect_cqe(3, HA_GPU_CQE_REQ_ERR, 3, HA_GPU_SYN_FLUSH);
	expect_cqe(4, HA_GPU_CQE_REQ_ERR, 4, HA_GPU_SYN_FLUSH);
	CHECK_INT(to[1], 101);
	CHECK_INT(to[3], 0);
	CHECK_INT(qp->state, SOFT_ERR);
	write_word(5, 5, 0); /* what is posted in error is flushed, too */
	ring(6);
	run();
	expect_cqe(5, HA_GPU_CQE_REQ_ERR, 5, HA_GPU_SYN_FLUSH);
	CHECK(soft_qp_drained(qp));
}

static void bad_write(struct ha_gpu_wqe *e, uint32_t qpn, uint16_t index, uint32_t l, uint32_t r)
{
	ha_gpu_wqe_write(e, qpn, index, 0);
	ha_gpu_wqe_remote(e, (uint64_t)(uintptr_t)&to[2], r);
	ha_gpu_wqe_data(e, 4, (uint64_t)(uintptr_t)&from[2], l, 8);
}

static void remote_access(void)
{
	struct ha_gpu_wqe e;

	start(3);
	bad_write(&e, qp->qpn, 2, lkey, lkey);
	third_fails(&e, HA_GPU_SYN_REMOTE_ACCESS);
	soft_nic_step(there);
	CHECK_INT(peer->state, SOFT_ERR);
	stop();
	start(3);
	ha_gpu_wqe_write(&e, qp->qpn, 2, 0);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)to + 4092, rkey); /* half of it is outside */
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)from, lkey, 8);
	third_fails(&e, HA_GPU_SYN_REMOTE_ACCESS);
	stop();
}

static void local_errors(void)
{
	struct ha_gpu_wqe e;

	start(3);
	bad_write(&e, qp->qpn, 2, rkey, rkey);
	third_fails(&e, HA_GPU_SYN_LOCAL_PROTECTION);
	stop();
	start(3);
	bad_write(&e, qp->qpn + 1, 2, lkey, rkey);
	third_fails(&e, HA_GPU_SYN_LOCAL_QP);
	stop();
	start(3);
	bad_write(&e, qp->qpn, 3, lkey, rkey);
	third_fails(&e, HA_GPU_SYN_LOCAL_QP);
	stop();
}

static void retries(void)
{
	struct ha_gpu_wqe e;

	start(3);
	write_word(0, 0, HA_GPU_WQE_SIGNALED);
	write_word(1, 1, HA_GPU_WQE_SIGNALED);
	ring(2);
	run();
	connect_qp(qp, peer);
	connect_qp(peer, qp);
	bad_write(&e, qp->qpn, 2, lkey, rkey);
	here->fault = (struct soft_fault) { .armed = true, .at = 4, .then = SOFT_THEN_CUT };
	third_fails(&e, HA_GPU_SYN_RETRIES);
	stop();
}

static void receiver_not_ready(void)
{
	struct ha_gpu_wqe e;
	uint32_t imm, length;

	start(3);
	bad_write(&e, qp->qpn, 2, lkey, rkey);
	e.w[0] = ha_gpu_pack_pair(2 << 8 | HA_GPU_OP_WRITE_IMM, qp->qpn << 8 | 3);
	third_fails(&e, HA_GPU_SYN_RNR);
	stop();

	start(3);
	ha_gpu_store32(&peer->dbrec[HA_GPU_DBR_RECEIVE], ha_gpu_be32(1));
	bad_write(&e, qp->qpn, 0, lkey, rkey);
	e.w[0] = ha_gpu_pack_pair(HA_GPU_OP_WRITE_IMM, qp->qpn << 8 | 3);
	e.w[1] = (uint64_t)0xcafef00d << 32 | HA_GPU_WQE_SIGNALED << 24;
	put_entry(0, &e);
	ring(1);
	run();
	CHECK_INT(ha_gpu_cqe_opcode(tail_of(&peer->receive, 0)), HA_GPU_CQE_RESP_WRITE_IMM);
	memcpy(&imm, peer->receive.cqe + HA_GPU_CQE_IMM, 4);
	memcpy(&length, peer->receive.cqe + HA_GPU_CQE_LENGTH, 4);
	CHECK_INT(imm, 0xcafef00d);
	CHECK_INT(ha_gpu_be32(length), 8);
	stop();
}

/* In a collapsed queue a flush overwrites the error, and with it what failed first. */
static void collapsed(void)
{
	struct ha_gpu_wqe e;

	start(0);
	bad_write(&e, qp->qpn, 0, lkey, lkey);
	put_entry(0, &e);
	ring(1);
	run();
	expect_cqe(0, HA_GPU_CQE_REQ_ERR, 0, HA_GPU_SYN_REMOTE_ACCESS);
	write_word(1, 1, 0);
	ring(2);
	run();
	expect_cqe(0, HA_GPU_CQE_REQ_ERR, 1, HA_GPU_SYN_FLUSH);
	stop();
}

static void atomic_and_read(void)
{
	struct ha_gpu_wqe e;

	start(0);
	to[7] = 40;
	ha_gpu_wqe_fetch_add(&e, qp->qpn, 0, 0, 2);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[7], rkey);
	ha_gpu_wqe_data(&e, 6, (uint64_t)(uintptr_t)&from[9], lkey, 8);
	put_entry(0, &e);
	ha_gpu_wqe_read(&e, qp->qpn, 1, HA_GPU_WQE_SIGNALED);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[7], rkey);
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)&from[10], lkey, 8);
	put_entry(1, &e);
	ring(2);
	run();
	CHECK_INT(from[9], 40);
	CHECK_INT(from[10], 42);
	expect_cqe(0, HA_GPU_CQE_REQ, 1, 0);
	stop();
}

/* Executed, the acknowledgement lost, the link back in time: the repetition is answered and not
 * executed. */
static void repeated_once(void)
{
	struct ha_gpu_wqe e;

	start(0);
	here->retry_ns = 1000000000;
	ha_gpu_wqe_fetch_add(&e, qp->qpn, 0, HA_GPU_WQE_SIGNALED, 2);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[7], rkey);
	ha_gpu_wqe_data(&e, 6, (uint64_t)(uintptr_t)&from[9], lkey, 8);
	put_entry(0, &e);
	ring(1);
	run();
	qp->ci = 0; /* it never received */
	qp->psn = 0;
	run();
	CHECK_INT(to[7], 2);
	CHECK_INT(there->count.repeated, 1);
	stop();
}

/* What was held of an old incarnation does not land in the new one; nor in a queue pair that is in
 * error. */
static void held(void)
{
	for (unsigned what = 0; what < 3; what++) {
		start(0);
		from[4] = 44;
		here->fault = (struct soft_fault) { .armed = true,
						    .n = 1,
						    .act = SOFT_ACT_HOLD,
						    .then = SOFT_THEN_NOTHING,
						    .hold_ns = 1 };
		write_word(0, 4, 0);
		ring(1);
		run();
		CHECK_INT(to[4], 0);
		if (what == 1)
			CHECK_INT(soft_qp_modify(peer, SOFT_ERR, 0, 0), 0);
		if (what == 2)
			connect_qp(peer, qp);
		for (uint64_t end = ha_gpu_now() + 1000; ha_gpu_now() < end;)
			;
		soft_nic_step(there);
		CHECK_INT(to[4], what ? 0 : 44);
		CHECK_INT(there->count.held_landed, !what);
		stop();
	}
}

static void states(void)
{
	start(0);
	CHECK_INT(soft_qp_modify(qp, SOFT_INIT, 0, 0), -EINVAL); /* it is in RTS */
	CHECK_INT(soft_qp_modify(qp, SOFT_ERR, 0, 0), 0);
	CHECK_INT(soft_qp_modify(qp, SOFT_RTS, 0, 0), -EINVAL);
	CHECK_INT(soft_qp_modify(qp, SOFT_RESET, 0, 0), 0);
	CHECK_INT(soft_qp_modify(qp, SOFT_RTR, 0, 0), -EINVAL);
	CHECK_INT(soft_qp_modify(qp, SOFT_INIT, 0, 0), 0);
	CHECK_INT(soft_qp_modify(qp, SOFT_RTR, 9, 0), -EINVAL);
	here->power = SOFT_DEAD;
	CHECK_INT(soft_qp_modify(qp, SOFT_RTR, 1, peer->qpn), -EIO);
	CHECK_INT(soft_nic_port(here), SOFT_PORT_UP); /* nobody has told */
	here->told = 1;
	CHECK_INT(soft_nic_port(here), SOFT_PORT_GONE);
	soft_nic_heal(here);
	CHECK_INT(soft_nic_port(here), SOFT_PORT_UP);
	CHECK(!soft_qp_create(here, &(struct soft_qp_attr) { .nwqes = 100 }));
	CHECK(!soft_mr_register(here, &fabric, 8, false)); /* not the fabric's memory */
	CHECK(!soft_fabric_open(SOFT_NICS_MAX + 1, 4096));
	stop();
}

/* A number that was given back while its NIC was gone is nobody's when the NIC is there again; who
 * got it next had a queue pair in error, whose register the NIC looked for before it was made. */
static void number_used_again(void)
{
	struct soft_qp_attr attr = { .nwqes = NWQES };
	struct soft_qp *target, *next;

	start(0);
	target = soft_dct_create(here, 5);
	CHECK(target);
	soft_qp_destroy(target);
	ha_gpu_store(&here->power, SOFT_DEAD);
	soft_nic_heal(here);
	next = soft_qp_create(here, &attr);
	CHECK(next == target);
	run();
	CHECK_INT(next->state, SOFT_RESET);
	CHECK_INT(soft_qp_modify(next, SOFT_INIT, 0, 0), 0);
	stop();
}

static const struct named_test tests[] = {
	{ "doorbells", doorbells },
	{ "owner_bit", owner_bit },
	{ "overrun", overrun },
	{ "remote_access", remote_access },
	{ "local_errors", local_errors },
	{ "retries", retries },
	{ "receiver_not_ready", receiver_not_ready },
	{ "collapsed", collapsed },
	{ "atomic_and_read", atomic_and_read },
	{ "repeated_once", repeated_once },
	{ "held", held },
	{ "states", states },
	{ "number_used_again", number_used_again },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
