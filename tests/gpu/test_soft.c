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

static void open_fabric(uint32_t cq_log)
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

static void close_fabric(void)
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

static void write_record(uint16_t upto)
{
	ha_gpu_store32(&qp->dbrec[HA_GPU_DBR_SEND], ha_gpu_be32(upto));
}

static void write_register(uint16_t upto)
{
	uint64_t first;

	memcpy(&first, qp->wqe + ((upto - 1) % NWQES) * 64, 8);
	ha_gpu_mmio(qp->bf, first);
}

static void ring_doorbell(uint16_t upto)
{
	write_record(upto);
	write_register(upto);
}

static void step_nic(void)
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

static void doorbells_start_work(void)
{
	open_fabric(3);
	from[1] = 11;
	write_word(0, 1, HA_GPU_WQE_SIGNALED);
	step_nic();
	CHECK_INT(to[1], 0); /* nothing said */
	write_record(1);
	step_nic();
	CHECK_INT(to[1], 0); /* the record alone */
	write_register(1);
	step_nic();
	CHECK_INT(to[1], 11);
	expect_cqe(0, HA_GPU_CQE_REQ, 0, 0);
	from[2] = 12;
	write_word(1, 2, 0);
	write_register(2);
	step_nic();
	CHECK_INT(to[2], 0); /* the register alone: the record has nothing new */
	close_fabric();
}

/* The owner bit turns with every round; unsignalled entries complete silently. */
static void owner_bit(void)
{
	open_fabric(2);
	for (uint16_t i = 0; i < 40; i++) {
		write_word(i, 3, i & 1 ? HA_GPU_WQE_SIGNALED : 0);
		ring_doorbell((uint16_t)(i + 1));
		step_nic();
		if (i & 1) {
			unsigned n = i / 2u;

			expect_cqe(n % 4, HA_GPU_CQE_REQ, i, 0);
			CHECK_INT(ha_gpu_cqe_owner(tail_of(&qp->send, n % 4)), n / 4 & 1);
			ha_gpu_store32(qp->send.dbrec, ha_gpu_be32(n + 1));
		}
	}
	close_fabric();
}

static void cq_overrun_is_an_error(void)
{
	open_fabric(2);
	for (uint16_t i = 0; i < 6; i++)
		write_word(i, i, HA_GPU_WQE_SIGNALED);
	ring_doorbell(6);
	step_nic();
	for (unsigned i = 0; i < 4; i++)
		expect_cqe(i, HA_GPU_CQE_REQ, i, 0); /* not overwritten */
	CHECK_INT(qp->state, SOFT_ERR);
	close_fabric();
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
	ring_doorbell(5);
	for (uint64_t end = ha_gpu_now() + 20000000; ha_gpu_now() < end && qp->ci != 5;)
		step_nic();
	expect_cqe(0, HA_GPU_CQE_REQ, 0, 0);
	expect_cqe(1, HA_GPU_CQE_REQ, 1, 0);
	expect_cqe(2, HA_GPU_CQE_REQ_ERR, 2, syndrome);
	expect_cqe(3, HA_GPU_CQE_REQ_ERR, 3, HA_GPU_SYN_FLUSH);
	expect_cqe(4, HA_GPU_CQE_REQ_ERR, 4, HA_GPU_SYN_FLUSH);
	CHECK_INT(to[1], 101);
	CHECK_INT(to[3], 0);
	CHECK_INT(qp->state, SOFT_ERR);
	write_word(5, 5, 0); /* what is posted in error is flushed, too */
	ring_doorbell(6);
	step_nic();
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

	open_fabric(3);
	bad_write(&e, qp->qpn, 2, lkey, lkey);
	third_fails(&e, HA_GPU_SYN_REMOTE_ACCESS);
	soft_nic_step(there);
	CHECK_INT(peer->state, SOFT_ERR);
	close_fabric();
	open_fabric(3);
	ha_gpu_wqe_write(&e, qp->qpn, 2, 0);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)to + 4092, rkey); /* half of it is outside */
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)from, lkey, 8);
	third_fails(&e, HA_GPU_SYN_REMOTE_ACCESS);
	close_fabric();
}

static void local_errors(void)
{
	struct ha_gpu_wqe e;

	open_fabric(3);
	bad_write(&e, qp->qpn, 2, rkey, rkey);
	third_fails(&e, HA_GPU_SYN_LOCAL_PROTECTION);
	close_fabric();
	open_fabric(3);
	bad_write(&e, qp->qpn + 1, 2, lkey, rkey);
	third_fails(&e, HA_GPU_SYN_LOCAL_QP);
	close_fabric();
	open_fabric(3);
	bad_write(&e, qp->qpn, 3, lkey, rkey);
	third_fails(&e, HA_GPU_SYN_LOCAL_QP);
	close_fabric();
}

static void retries_run_out(void)
{
	struct ha_gpu_wqe e;

	open_fabric(3);
	write_word(0, 0, HA_GPU_WQE_SIGNALED);
	write_word(1, 1, HA_GPU_WQE_SIGNALED);
	ring_doorbell(2);
	step_nic();
	connect_qp(qp, peer);
	connect_qp(peer, qp);
	bad_write(&e, qp->qpn, 2, lkey, rkey);
	here->fault = (struct soft_fault) { .armed = true, .at = 4, .then = SOFT_THEN_CUT };
	third_fails(&e, HA_GPU_SYN_RETRIES);
	close_fabric();
}

static void receiver_not_ready(void)
{
	struct ha_gpu_wqe e;
	uint32_t imm, length;

	open_fabric(3);
	bad_write(&e, qp->qpn, 2, lkey, rkey);
	e.w[0] = ha_gpu_pack_pair(2 << 8 | HA_GPU_OP_WRITE_IMM, qp->qpn << 8 | 3);
	third_fails(&e, HA_GPU_SYN_RNR);
	close_fabric();

	open_fabric(3);
	ha_gpu_store32(&peer->dbrec[HA_GPU_DBR_RECEIVE], ha_gpu_be32(1));
	bad_write(&e, qp->qpn, 0, lkey, rkey);
	e.w[0] = ha_gpu_pack_pair(HA_GPU_OP_WRITE_IMM, qp->qpn << 8 | 3);
	e.w[1] = (uint64_t)0xcafef00d << 32 | HA_GPU_WQE_SIGNALED << 24;
	put_entry(0, &e);
	ring_doorbell(1);
	step_nic();
	CHECK_INT(ha_gpu_cqe_opcode(tail_of(&peer->receive, 0)), HA_GPU_CQE_RESP_WRITE_IMM);
	memcpy(&imm, peer->receive.cqe + HA_GPU_CQE_IMM, 4);
	memcpy(&length, peer->receive.cqe + HA_GPU_CQE_LENGTH, 4);
	CHECK_INT(imm, 0xcafef00d);
	CHECK_INT(ha_gpu_be32(length), 8);
	close_fabric();
}

/* In a collapsed queue a flush overwrites the error, and with it what failed first. */
static void flush_overwrites_error(void)
{
	struct ha_gpu_wqe e;

	open_fabric(0);
	bad_write(&e, qp->qpn, 0, lkey, lkey);
	put_entry(0, &e);
	ring_doorbell(1);
	step_nic();
	expect_cqe(0, HA_GPU_CQE_REQ_ERR, 0, HA_GPU_SYN_REMOTE_ACCESS);
	write_word(1, 1, 0);
	ring_doorbell(2);
	step_nic();
	expect_cqe(0, HA_GPU_CQE_REQ_ERR, 1, HA_GPU_SYN_FLUSH);
	close_fabric();
}

static void atomic_and_read(void)
{
	struct ha_gpu_wqe e;

	open_fabric(0);
	to[7] = 40;
	ha_gpu_wqe_fetch_add(&e, qp->qpn, 0, 0, 2);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[7], rkey);
	ha_gpu_wqe_data(&e, 6, (uint64_t)(uintptr_t)&from[9], lkey, 8);
	put_entry(0, &e);
	ha_gpu_wqe_read(&e, qp->qpn, 1, HA_GPU_WQE_SIGNALED);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[7], rkey);
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)&from[10], lkey, 8);
	put_entry(1, &e);
	ring_doorbell(2);
	step_nic();
	CHECK_INT(from[9], 40);
	CHECK_INT(from[10], 42);
	expect_cqe(0, HA_GPU_CQE_REQ, 1, 0);
	close_fabric();
}

/* Executed, the acknowledgement lost, the link back in time: the repetition is answered and not
 * executed. */
static void repeated_once(void)
{
	struct ha_gpu_wqe e;

	open_fabric(0);
	here->retry_ns = 1000000000;
	ha_gpu_wqe_fetch_add(&e, qp->qpn, 0, HA_GPU_WQE_SIGNALED, 2);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[7], rkey);
	ha_gpu_wqe_data(&e, 6, (uint64_t)(uintptr_t)&from[9], lkey, 8);
	put_entry(0, &e);
	ring_doorbell(1);
	step_nic();
	qp->ci = 0; /* it never received */
	qp->psn = 0;
	step_nic();
	CHECK_INT(to[7], 2);
	CHECK_INT(there->count.repeated, 1);
	close_fabric();
}

/* What was held of an old incarnation does not land in the new one; nor in a queue pair that is in
 * error. */
static void only_current_held_writes_land(void)
{
	for (unsigned what = 0; what < 3; what++) {
		open_fabric(0);
		from[4] = 44;
		here->fault = (struct soft_fault) { .armed = true,
						    .n = 1,
						    .act = SOFT_ACT_HOLD,
						    .then = SOFT_THEN_NOTHING,
						    .hold_ns = 1 };
		write_word(0, 4, 0);
		ring_doorbell(1);
		step_nic();
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
		close_fabric();
	}
}

static void state_changes_are_checked(void)
{
	open_fabric(0);
	CHECK_INT(soft_qp_modify(qp, SOFT_INIT, 0, 0), -EINVAL); /* it is in RTS */
	CHECK_INT(soft_qp_modify(qp, SOFT_ERR, 0, 0), 0);
	CHECK_INT(soft_qp_modify(qp, SOFT_RTS, 0, 0), -EINVAL);
	CHECK_INT(soft_qp_modify(qp, SOFT_RESET, 0, 0), 0);
	CHECK_INT(soft_qp_modify(qp, SOFT_RTR, 0, 0), -EINVAL);
	CHECK_INT(soft_qp_modify(qp, SOFT_INIT, 0, 0), 0);
	CHECK_INT(soft_qp_modify(qp, SOFT_RTR, 9, 0), -EINVAL);
	here->power = SOFT_DEAD;
	CHECK_INT(soft_qp_modify(qp, SOFT_RTR, 1, peer->qpn), -EIO);
	CHECK_INT(soft_nic_port(here), SOFT_PORT_UP); /* no event came */
	here->reported = 1;
	CHECK_INT(soft_nic_port(here), SOFT_PORT_GONE);
	soft_nic_heal(here);
	CHECK_INT(soft_nic_port(here), SOFT_PORT_UP);
	CHECK(!soft_qp_create(here, &(struct soft_qp_attr) { .nwqes = 100 }));
	CHECK(!soft_mr_register(here, &fabric, 8, false)); /* not the fabric's memory */
	CHECK(!soft_fabric_open(SOFT_NICS_MAX + 1, 4096));
	close_fabric();
}

/* A number that was given back while its NIC was gone is nobody's when the NIC is there again; who
 * got it next had a queue pair in error, whose register the NIC looked for before it was made. */
static void number_used_again(void)
{
	struct soft_qp_attr attr = { .nwqes = NWQES };
	struct soft_qp *target, *next;

	open_fabric(0);
	target = soft_dct_create(here, 5);
	CHECK(target);
	soft_qp_destroy(target);
	ha_gpu_store(&here->power, SOFT_DEAD);
	soft_nic_heal(here);
	next = soft_qp_create(here, &attr);
	CHECK(next == target);
	step_nic();
	CHECK_INT(next->state, SOFT_RESET);
	CHECK_INT(soft_qp_modify(next, SOFT_INIT, 0, 0), 0);
	close_fabric();
}

static const struct named_test tests[] = {
	{ "doorbells", doorbells_start_work },
	{ "owner_bit", owner_bit },
	{ "overrun", cq_overrun_is_an_error },
	{ "remote_access", remote_access },
	{ "local_errors", local_errors },
	{ "retries", retries_run_out },
	{ "receiver_not_ready", receiver_not_ready },
	{ "collapsed", flush_overwrites_error },
	{ "atomic_and_read", atomic_and_read },
	{ "repeated_once", repeated_once },
	{ "held", only_current_held_writes_land },
	{ "states", state_changes_are_checked },
	{ "number_used_again", number_used_again },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
