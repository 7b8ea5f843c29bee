/* SPDX-License-Identifier: BSD-3-Clause */
/* test_dc.c - dynamic connections: targets of the software NIC, and the host library's rows of
 * them, with backups, growth and the end */
#include "gpu/failover/soft_path.h"
#include "gpu/host/state.h"
#include "tests/gpu/job.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define PIECE 512
#define SIGNAL 5

/* ---- the software NIC, stepped by hand ---- */

static struct soft_qp *dci;
static uint64_t *from, *to;
static uint32_t lkey, rkey;

static void post_write(uint16_t n, unsigned word, const struct soft_qp *target, uint64_t key)
{
	struct ha_gpu_wqe e, block[2];
	uint64_t av[6];

	soft_write_av(av, target->nic->number, target->qpn, key);
	ha_gpu_wqe_write(&e, dci->qpn, (uint16_t)(2 * n), HA_GPU_WQE_SIGNALED);
	ha_gpu_wqe_remote(&e, (uint64_t)(uintptr_t)&to[word], rkey);
	ha_gpu_wqe_data(&e, 4, (uint64_t)(uintptr_t)&from[word], lkey, 8);
	ha_gpu_wqe_widen(&e, av, &block[0], &block[1]);
	memcpy(dci->wqe + (2 * n & 63) * 64, block, sizeof(block));
	ha_gpu_store32(&dci->dbrec[HA_GPU_DBR_SEND], ha_gpu_be32((2u * n + 2) & 0xffff));
	ha_gpu_mmio(dci->bf, e.w[0] + n);
}

/* The first step receives the doorbell; then until the entry is done, in one way or the other. */
static void drain_queue(struct soft_fabric *f)
{
	uint64_t end = ha_gpu_now() + 120 * SECOND;

	do {
		CHECK(ha_gpu_now() < end);
		soft_nic_step(&f->nic[0]);
	} while (dci->ci != dci->pi);
}

static unsigned state_of(unsigned *syndrome)
{
	uint64_t w = ha_gpu_load((uint64_t *)(void *)(dci->send.cqe + HA_GPU_CQE_QPN));

	*syndrome = dci->send.cqe[HA_GPU_CQE_SYNDROME];
	return ha_gpu_cqe_opcode(w) << 16 | ha_gpu_cqe_counter(w);
}

static void bring_up_dci(void)
{
	CHECK_INT(soft_qp_modify(dci, SOFT_RESET, 0, 0), 0);
	CHECK_INT(soft_qp_modify(dci, SOFT_INIT, 0, 0), 0);
	CHECK_INT(soft_qp_modify(dci, SOFT_RTR, 0, 0), 0);
	CHECK_INT(soft_qp_modify(dci, SOFT_RTS, 0, 0), 0);
}

static void targets_take_turns(void)
{
	struct soft_fabric *f = soft_fabric_open(2, 1 << 20);
	struct soft_qp *a = soft_dct_create(&f->nic[1], 77), *b = soft_dct_create(&f->nic[1], 88);
	unsigned syndrome;

	f->nic[0].retry_ns = 1000;
	dci = soft_qp_create(&f->nic[0], &(struct soft_qp_attr) { .nwqes = 64, .dci = true });
	from = soft_alloc(f, 4096);
	to = soft_alloc(f, 4096);
	CHECK(a && b && dci && from && to);
	lkey = ha_gpu_be32(soft_mr_register(&f->nic[0], from, 4096, false));
	rkey = ha_gpu_be32(soft_mr_register(&f->nic[1], to, 4096, true));
	bring_up_dci();
	for (unsigned i = 0; i < 40; i++) { /* the ring goes round, the targets take turns */
		from[i] = i + 1000;
		post_write((uint16_t)i, i, i & 1 ? a : b, i & 1 ? 77 : 88);
		drain_queue(f);
		CHECK_INT(to[i], i + 1000);
		CHECK_INT(state_of(&syndrome), HA_GPU_CQE_REQ << 16 | 2 * i);
	}
	from[50] = 1;
	post_write(40, 50, a, 88); /* b's key */
	drain_queue(f);
	CHECK_INT(to[50], 0);
	CHECK_INT(state_of(&syndrome), HA_GPU_CQE_REQ_ERR << 16 | 80);
	CHECK_INT(syndrome, HA_GPU_SYN_RETRIES);
	bring_up_dci();
	CHECK_INT(soft_qp_modify(a, SOFT_ERR, 0, 0), 0); /* closed */
	post_write(0, 50, a, 77);
	drain_queue(f);
	CHECK_INT(to[50], 0);
	CHECK_INT(state_of(&syndrome), HA_GPU_CQE_REQ_ERR << 16);
	bring_up_dci();
	post_write(0, 50, b, 88); /* a conversation begins anew with the initiator's incarnation */
	drain_queue(f);
	CHECK_INT(to[50], 1);
	CHECK_INT(soft_qp_modify(a, SOFT_RESET, 0, 0), -EINVAL);
	soft_fabric_close(f);
}

/* ---- the host library ---- */

static struct job job;
static uint64_t round_;

static void *connect_dc(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_connect_dc(p->host, 1, 1);
	return NULL;
}

static void start_job(int pes)
{
	job_start(&job, pes, 2);
	job_all(&job, job_open);
	job_want(&job, 0);
	job_all(&job, connect_dc);
	job_want(&job, 0);
}

static void end_job(void)
{
	job_all(&job, job_finalize);
	job_want(&job, 0);
	job_end(&job);
}

static struct ha_gpu_conn *find_conn(int pe, uint64_t row, int peer)
{
	return ha_gpu_world_dc(job.pe[pe].world, row, (uint32_t)peer);
}

static uint8_t pattern_byte(uint64_t row, int a, int b)
{
	return (uint8_t)(round_ * 41 + row * 9 + (uint64_t)a * 5 + (uint64_t)b + 1);
}

static uint64_t piece_offset(uint64_t row, int pe, bool incoming)
{
	return (((uint64_t)incoming * 2 + row) * JOB_PES_MAX + (uint64_t)pe) * PIECE;
}

static void one_exchange(struct job_pe *p, uint64_t row, int peer, bool sends)
{
	struct ha_gpu_conn *c = find_conn(p->pe, row, peer);
	uint8_t *here = p->heap + piece_offset(row, peer, !sends);

	if (sends) {
		memset(here, pattern_byte(row, p->pe, peer), PIECE);
		CHECK_INT(ha_gpu_put_nbi(c, c->remote + piece_offset(row, p->pe, true), here, PIECE,
					 0, 120 * SECOND),
			  HA_GPU_DONE);
		CHECK_INT(ha_gpu_fence(c, 120 * SECOND), HA_GPU_DONE);
		CHECK_INT(ha_gpu_signal(c, SIGNAL, 1, 0, 120 * SECOND), HA_GPU_DONE);
		return;
	}
	CHECK_INT(ha_gpu_wait(c, SIGNAL, round_, 120 * SECOND), HA_GPU_DONE);
	for (unsigned i = 0; i < PIECE; i++)
		CHECK_INT(here[i], pattern_byte(row, peer, p->pe));
}

static void *exchange_body(void *arg)
{
	struct job_pe *p = arg;

	for (int step = 0; step < 3; step++)
		for (uint64_t row = 0; row < p->world->dc; row++)
			for (int peer = 0; peer < p->job->pes; peer++) {
				if (peer == p->pe)
					continue;
				if (step < 2)
					one_exchange(p, row, peer, step == 0);
				else
					CHECK_INT(ha_gpu_quiet(find_conn(p->pe, row, peer),
							       120 * SECOND),
						  HA_GPU_DONE);
			}
	CHECK(!ha_gpu_bootstrap_agree(&p->bootstrap, 0));
	return NULL;
}

static void exchange_rounds(unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		round_++;
		job_all(&job, exchange_body);
	}
}

/* What an entry carries is what the peer made for us: target, key, NIC. */
static void handles_name_targets(void)
{
	start_job(3);
	for (int pe = 0; pe < 3; pe++)
		for (uint64_t row = 0; row < 2; row++)
			for (int peer = 0; peer < 3; peer++)
				for (int path = 0; path < 2 && pe != peer; path++) {
					struct ha_gpu_path *p =
						&find_conn(pe, row, peer)->path[path];
					struct soft_nic *there =
						&job.fabric->nic[(uint64_t)peer * 2 +
								 (row ^ (uint64_t)path)];
					struct ha_gpu_ep *theirs =
						job.pe[peer].host->slot[row].rc[path].eps[pe];
					uint32_t number = ha_gpu_be32((uint32_t)p->av[1]);
					struct soft_qp *dct = NULL;

					CHECK(p->wide && number & HA_GPU_AV_EXTENDED);
					for (uint64_t i = 0; i < there->nqps; i++)
						if (there->qp[i].qpn == (number & 0xffffff))
							dct = &there->qp[i];
					CHECK(dct && dct->kind == SOFT_DCT && dct->rx.accepts);
					CHECK_INT(p->av[5], there->number);
					CHECK(ha_gpu_be64(p->av[0]) == dct->dc.key &&
					      dct->dc.key == theirs->link.local.dc_key);
					CHECK_INT(theirs->dct.number, dct->qpn);
				}
	/* these are no queue pairs of their own */
	CHECK(!ha_gpu_world_conn(job.pe[0].world, 0, 1));
	CHECK(!find_conn(0, 2, 1) && !find_conn(0, 0, 0));
	job_all(&job, connect_dc);
	job_want(&job, -EALREADY);
	end_job();
}

static void *look_for_connected(void *unused)
{
	const struct ha_gpu_world *w = job.pe[0].world;

	for (uint64_t rows = 0; !rows; rows = ha_gpu_load(&w->nrows))
		CHECK(!ha_gpu_world_conn(w, 0, 1));
	CHECK(!ha_gpu_world_conn(w, 0, 1));
	return NULL;
}

/* A kernel that waits for a queue pair of its own may look while the first rows are made: it is not
 * given a dynamic one. */
static void looked_for_meanwhile(void)
{
	pthread_t t;

	job_start(&job, 2, 2);
	job_all(&job, job_open);
	job_want(&job, 0);
	CHECK(!pthread_create(&t, NULL, look_for_connected, NULL));
	job_all(&job, connect_dc);
	job_want(&job, 0);
	pthread_join(t, NULL);
	CHECK(find_conn(0, 0, 1));
	end_job();
}

static void all_to_all(void)
{
	start_job(3);
	round_ = 0;
	exchange_rounds(30);
	end_job();
}

static void growth_adds_connected_ones(void)
{
	struct ha_gpu_host_stats s;

	start_job(2);
	round_ = 0;
	exchange_rounds(2);
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
	ha_gpu_host_stats(job.pe[0].host, &s);
	CHECK_INT(s.dc, 2);
	CHECK_INT(s.rows, 4);
	CHECK(ha_gpu_world_conn(job.pe[0].world, 1, 1) &&
	      !ha_gpu_world_conn(job.pe[0].world, 2, 1));
	CHECK(!ha_gpu_world_conn(job.pe[0].world, 0, 1)->path[0].wide);
	exchange_rounds(2);
	job_round++;
	job_all(&job, job_exchange);
	end_job();
}

static int fail_exchange(void *self, const void *send, void *receive, size_t bytes)
{
	return -EIO;
}

/* Rows that were never begun leave nothing behind: the next ones, queue pairs of their own, were
 * taken for dynamic ones. */
static void never_begun(void)
{
	int (*word)(void *, const void *, void *, size_t);

	job_start(&job, 2, 2);
	job_all(&job, job_open);
	job_want(&job, 0);
	word = job.pe[0].bootstrap.alltoall;
	for (int pe = 0; pe < 2; pe++)
		job.pe[pe].bootstrap.alltoall = fail_exchange;
	job_all(&job, connect_dc);
	job_want(&job, -EIO);
	for (int pe = 0; pe < 2; pe++)
		job.pe[pe].bootstrap.alltoall = word;
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
	CHECK_INT(job.pe[0].world->dc, 0);
	CHECK(ha_gpu_world_conn(job.pe[0].world, 1, 1) && !find_conn(0, 0, 1));
	job_round++;
	job_all(&job, job_exchange);
	end_job();
}

static void wait_for(struct ha_gpu_conn *c, uint64_t path)
{
	for (uint64_t end = ha_gpu_now() + 120 * SECOND; ha_gpu_load(&c->active) != path;
	     usleep(1000))
		CHECK(ha_gpu_now() < end);
}

/* The target dies with its NIC, and the initiator beside it; both ends go on over the backup's. */
static void nic_killed(void)
{
	start_job(2);
	round_ = 0;
	exchange_rounds(3);
	job_kill(&job, 1, 0, true);
	exchange_rounds(20);
	CHECK_INT(ha_gpu_load(&find_conn(0, 0, 1)->active), 1);
	CHECK_INT(ha_gpu_load(&find_conn(1, 0, 0)->active), 1);
	CHECK_INT(ha_gpu_load(&find_conn(0, 1, 1)->active), 0);
	end_job();
}

/* The path comes back with other targets: their numbers and keys travel with JOIN. */
static void comes_back(void)
{
	struct ha_gpu_conn *c;
	uint64_t key;

	start_job(2);
	round_ = 0;
	exchange_rounds(3);
	c = find_conn(0, 0, 1);
	key = c->path[0].av[0];
	for (int i = 0; i < 2; i++) {
		job_kill(&job, 1, 0, true);
		exchange_rounds(5);
		wait_for(c, 1);
		soft_nic_heal(&job.fabric->nic[2]);
		wait_for(c, 0);
		exchange_rounds(5);
		CHECK(c->path[0].av[0] != key);
		key = c->path[0].av[0];
	}
	end_job();
}

/* A target's port comes back with another address: it was sent with the target's number and key
 * never. */
static void another_address(void)
{
	start_job(2);
	round_ = 0;
	exchange_rounds(3);
	for (uint64_t i = 1; i <= 2; i++) {
		ha_gpu_store(&job.fabric->nic[2].link, 0);
		ha_gpu_store(&job.fabric->nic[2].reported, 1);
		wait_for(find_conn(0, 0, 1), 1);
		exchange_rounds(2);
		ha_gpu_store(&job.fabric->nic[2].address, 100 * i);
		soft_nic_heal(&job.fabric->nic[2]);
		wait_for(find_conn(0, 0, 1), 0);
		exchange_rounds(2);
	}
	end_job();
}

static void one_round(void)
{
	round_ = 0;
	exchange_rounds(1);
}

static void each_call_fails(void)
{
	CHECK(job_each_call_fails(&job, (void *(*const[])(void *)) { connect_dc }, 1, one_round) >=
	      50);
}

static const struct named_test tests[] = {
	{ "targets", targets_take_turns },
	{ "handles", handles_name_targets },
	{ "all_to_all", all_to_all },
	{ "growth_adds_connected_ones", growth_adds_connected_ones },
	{ "never_begun", never_begun },
	{ "looked_for_meanwhile", looked_for_meanwhile },
	{ "nic_killed", nic_killed },
	{ "comes_back", comes_back },
	{ "another_address", another_address },
	{ "each_call_fails", each_call_fails },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
