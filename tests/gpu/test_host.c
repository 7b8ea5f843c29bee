/* SPDX-License-Identifier: BSD-3-Clause */
/* test_host.c - the host library over software NICs: processes of a job (job.h), what they exchange
 * each other, growth, the end */
#include "gpu/host/state.h"
#include "gpu/soft/lock.h"
#include "gpu/soft/send.h"
#include "tests/gpu/job.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static struct job job;

static void start_job(int pes, int nics, void *(*connect)(void *))
{
	job_start(&job, pes, nics);
	job_all(&job, job_open);
	job_want(&job, 0);
	job_all(&job, connect);
	job_want(&job, 0);
}

static void end_job(void)
{
	job_all(&job, job_finalize);
	job_want(&job, 0);
	job_end(&job);
}

static void exchange_data(void)
{
	job_round++;
	job_all(&job, job_exchange);
}

static struct ha_gpu_conn *find_conn(int pe, uint64_t row, int peer)
{
	return ha_gpu_world_conn(job.pe[pe].world, row, (uint32_t)peer);
}

static void all_to_all(void)
{
	start_job(3, 2, job_connect_2_2);
	for (int i = 0; i < 3; i++) {
		CHECK_INT(ha_gpu_load(&job.pe[i].world->nrows), 4);
		CHECK(!find_conn(i, 0, i) && !find_conn(i, 4, (i + 1) % 3) &&
		      find_conn(i, 3, (i + 1) % 3));
	}
	exchange_data();
	exchange_data();
	end_job();
}

static void one_rank_alone(void)
{
	start_job(1, 2, job_connect_2_2);
	CHECK(!find_conn(0, 0, 0));
	end_job();
}

/* What a path says of itself is what its NIC made: number, keys, mailbox; the other path's numbers
 * are in use there, by foreign queue pairs. */
static void path_is_its_nics(int pe, uint64_t row, int peer, int path, int nic, int peer_nic)
{
	struct ha_gpu_conn *c = find_conn(pe, row, peer);
	struct ha_gpu_path *p = &c->path[path];
	struct soft_nic *here = &job.fabric->nic[pe * job.nics + nic],
			*there = &job.fabric->nic[peer * job.nics + peer_nic];
	uint64_t chunk = UINT64_C(1) << c->chunk, bytes;
	struct soft_qp *qp = NULL;

	for (uint64_t i = 0; i < here->nqps; i++)
		if (here->qp[i].qpn == p->qpn)
			qp = &here->qp[i];
	CHECK(qp && qp->wqe == p->wqe && qp->dbrec == p->dbrec && qp->bf == p->bf &&
	      qp->send.cqe == p->cqe);
	CHECK_INT(qp->peer_nic, peer * job.nics + peer_nic);
	CHECK_INT(qp->state, SOFT_RTS);
	for (uint32_t i = 0; i < p->nlkey; i++) {
		bytes = c->local_bytes - i * chunk < chunk ? c->local_bytes - i * chunk : chunk;
		CHECK(soft_mr_find(here, ha_gpu_be32(p->lkey[i]), c->local + i * chunk, bytes,
				   false));
	}
	CHECK_INT(p->nrkey, (c->remote_bytes + chunk - 1) / chunk);
	for (uint32_t i = 0; i < p->nrkey; i++)
		CHECK(soft_mr_find(there, ha_gpu_be32(p->rkey[i]), c->remote + i * chunk, 1, true));
	CHECK(soft_mr_find(there, ha_gpu_be32(p->mailbox_key), p->mailbox,
			   sizeof(struct ha_gpu_mailbox), true));
	CHECK(p->mailbox == (uint64_t)(uintptr_t)find_conn(peer, row, pe)->mailbox);
	CHECK(soft_mr_find(here, ha_gpu_be32(p->scratch_key), (uint64_t)(uintptr_t)c->scratch, 64,
			   false));
}

/* Keys are found by the chunks that a rank itself has: one that cuts the heap otherwise found
 * others' keys, or none. */
/* The first would take the others' handles for what they are not, and wait for what does not
 * come. */
static void unlike_numbers(void)
{
	job_start(&job, 3, 2);
	job.pe[1].config.settings.rc_per_pe = 3;
	job_all(&job, job_open);
	job_want(&job, 0);
	job_all(&job, job_connect_2_2);
	job_want(&job, -EINVAL);
	job_all(&job, job_connect_1_1); /* and nothing is left of it */
	job_want(&job, 0);
	exchange_data();
	end_job();
}

static void unlike_settings(void)
{
	job_start(&job, 3, 2);
	job.pe[1].config.settings.chunk_log--;
	job_all(&job, job_open);
	job_want(&job, -EINVAL);
	job.pe[1].config.settings.chunk_log++;
	job.pe[2].config.settings.backup = 0;
	job_all(&job, job_open);
	job_want(&job, -EINVAL);
	job.pe[2].config.settings.backup = 1;
	job_all(&job, job_open);
	job_want(&job, 0);
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
	exchange_data();
	end_job();
}

/* Hang and corruption: key tables with the wrong stride; entries of the backup with the primary's
 * keys. */
static void key_tables(void)
{
	start_job(3, 2, job_connect_2_2);
	for (int pe = 0; pe < 3; pe++)
		for (int peer = 0; peer < 3; peer++)
			for (uint64_t row = 0; pe != peer && row < 4; row++) {
				int nic = (int)row / 2;

				path_is_its_nics(pe, row, peer, 0, nic, nic);
				path_is_its_nics(pe, row, peer, 1, nic ^ 1, nic ^ 1);
			}
	end_job();
}

/* Corruption: an entry for the backup that carries the primary's number. Numbers repeat on every
 * NIC, so it would hit a foreign queue pair. */
static void qpn_of_its_own(void)
{
	unsigned differ = 0, unauthenticated = 0;

	start_job(2, 2, job_connect_2_2);
	for (uint64_t row = 0; row < 4; row++) {
		struct ha_gpu_conn *c = find_conn(0, row, 1);
		struct soft_nic *backup = &job.fabric->nic[row < 2 ? 1 : 0];
		bool used = false;

		differ += c->path[0].qpn != c->path[1].qpn;
		for (uint64_t i = 0; i < backup->nqps; i++)
			used |= backup->qp[i].qpn == c->path[0].qpn;
		unauthenticated += used;
	}
	CHECK_INT(differ, 4);
	CHECK_INT(unauthenticated, 3);
	exchange_data();
	job_kill(&job, 0, 0, true);
	/* the NIC refuses entries with another's number, so what comes through has its own */
	exchange_data();
	CHECK_INT(ha_gpu_load(&find_conn(0, 0, 1)->active), 1);
	CHECK_INT(ha_gpu_load(&find_conn(0, 2, 1)->active), 0);
	soft_nic_heal(&job.fabric->nic[0]);
	exchange_data();
	end_job();
}

struct seen {
	struct ha_gpu_conn *at;
	struct ha_gpu_path path[HA_GPU_PATHS];
	struct ha_gpu_ep *ep[HA_GPU_ROLES];
};

static void record_conn(struct seen *s, int pe, uint64_t row, int peer)
{
	struct ha_gpu_host *h = job.pe[pe].host;
	struct ha_gpu_row *r = &h->row[row];

	s->at = find_conn(pe, row, peer);
	memcpy(s->path, s->at->path, sizeof(s->path));
	for (int role = 0; role < HA_GPU_ROLES; role++)
		s->ep[role] =
			r->i[role] == UINT_MAX
				? NULL
				: r->slot->rc[role]
					  .eps[r->i[role] * (unsigned)h->pes + (unsigned)peer];
}

static void no_two_share(int pe, int peer, uint64_t rows)
{
	for (uint64_t a = 0; a < rows; a++)
		for (uint64_t b = 0; b < a; b++)
			for (int x = 0; x < HA_GPU_PATHS; x++)
				for (int y = 0; y < HA_GPU_PATHS; y++) {
					struct ha_gpu_path *p = &find_conn(pe, a, peer)->path[x],
							   *q = &find_conn(pe, b, peer)->path[y];

					CHECK(!p->wqe ||
					      (p->wqe != q->wqe && p->bf != q->bf &&
					       p->cqe != q->cqe && p->dbrec != q->dbrec));
				}
}

/* Corruption: the count of backups overwrites primaries on growth. Here it is another count at each
 * call. */
static void growth_keeps_what_is(void)
{
	struct ha_gpu_host_stats before, after;
	struct seen was[4], is;

	start_job(2, 2, job_connect_2_1);
	exchange_data();
	for (uint64_t row = 0; row < 4; row++)
		record_conn(&was[row], 0, row, 1);
	ha_gpu_host_stats(job.pe[0].host, &before);
	CHECK_INT(before.rows, 4);
	CHECK_INT(before.backed_up, 2);
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
	job_all(&job, job_connect_2_1);
	job_want(&job, 0);
	for (uint64_t row = 0; row < 4; row++) {
		record_conn(&is, 0, row, 1);
		CHECK(!memcmp(is.path, was[row].path, sizeof(is.path)) && is.at == was[row].at);
		CHECK(is.ep[0] == was[row].ep[0] && is.ep[1] == was[row].ep[1]);
	}
	ha_gpu_host_stats(job.pe[0].host, &after);
	CHECK_INT(after.rows, 10);
	CHECK_INT(after.backed_up, 6);
	/* The increment alone was copied: six rows of two connections. */
	CHECK_INT(after.copied - before.copied,
		  6 * (2 * sizeof(struct ha_gpu_conn) + sizeof(uint64_t)));
	no_two_share(0, 1, 10);
	CHECK_INT(job.pe[0].host->slot[0].rc[HA_GPU_PRIMARY].num_eps_per_pe, 5);
	CHECK_INT(job.pe[0].host->slot[0].rc[HA_GPU_BACKUP].num_eps_per_pe, 3);
	exchange_data();
	end_job();
}

/* Hang: a NIC that is dead at the start is somebody's backup. */
static void dead_at_the_start(void)
{
	struct ha_gpu_host_stats s;

	job_start(&job, 2, 3);
	job_kill(&job, 0, 1, false);
	job_all(&job, job_open);
	job_want(&job, 0);
	job_all(&job, job_connect_1_1);
	job_want(&job, 0);
	CHECK_INT(ha_gpu_host_backups(job.pe[0].host)->of[0], 2);
	CHECK_INT(ha_gpu_host_backups(job.pe[0].host)->of[1], HA_GPU_NO_BACKUP);
	CHECK_INT(ha_gpu_host_backups(job.pe[0].host)->of[2], 0);
	ha_gpu_host_stats(job.pe[0].host, &s);
	CHECK_INT(s.devices, 2);
	CHECK_INT(s.rows, 3); /* the other process has three */
	exchange_data();
	end_job();
}

static void nothing_is_up(void)
{
	job_start(&job, 2, 2);
	job_kill(&job, 0, 0, false);
	job_kill(&job, 0, 1, true);
	job_all(&job, job_open);
	job_want(&job, -ENODEV); /* the other one, too */
	job_end(&job);
}

/* Until the path's incarnation has ended at this end: nothing brings it back while a NIC is away,
 * but this end, whose own is there, has soon begun to try. */
static void wait_until_failed(struct ha_gpu_conn *c, unsigned path)
{
	uint64_t end = ha_gpu_now() + 120 * SECOND, health;

	while ((health = ha_gpu_load(&c->health[path])) != HA_GPU_FAILED &&
	       health != HA_GPU_RECOVERING) {
		CHECK(ha_gpu_now() < end);
		usleep(1000);
	}
}

/* One NIC at each end: a path that fails comes back by itself. */
static void without_backup(void)
{
	struct ha_gpu_conn *c;

	start_job(2, 1, job_connect_2_2);
	exchange_data();
	c = find_conn(0, 0, 1);
	CHECK(!c->path[1].wqe);
	ha_gpu_store(&job.fabric->nic[1].link, 0);
	ha_gpu_store(&job.fabric->nic[1].reported, 1);
	wait_until_failed(c, 0);
	soft_nic_heal(&job.fabric->nic[1]);
	exchange_data();
	CHECK_INT(ha_gpu_load(&c->active), 0);
	end_job();
}

static uint64_t number_of(const struct soft_nic *n, uint32_t qpn, bool received)
{
	struct soft_qp *qp = NULL;
	uint64_t number;

	for (uint64_t i = 0; i < n->nqps; i++)
		if (n->qp[i].qpn == qpn)
			qp = (struct soft_qp *)&n->qp[i];
	CHECK(qp);
	soft_lock(&qp->sq_lock);
	soft_lock(&qp->rx.lock);
	number = received ? qp->rx.expected : qp->psn;
	soft_unlock(&qp->rx.lock);
	soft_unlock(&qp->sq_lock);
	return number;
}

/* A path that came back began with the packet number of its first incarnation: what had lingered in
 * the network could be taken for new. */
static void fresh_numbers(void)
{
	struct ha_gpu_agent_path *p;
	struct ha_gpu_conn *c;
	struct ha_gpu_ep *e;
	uint64_t first;

	start_job(2, 1, job_connect_1_1);
	exchange_data();
	c = find_conn(0, 0, 1);
	e = job.pe[0].host->slot[0].rc[HA_GPU_PRIMARY].eps[1];
	p = &job.pe[0].host->row[0].agent[1].path[0];
	/* The first incarnation, or, where a NIC's thread was without a processor for a second, a
	 * later one. */
	CHECK(number_of(&job.fabric->nic[0], c->path[0].qpn, false) -
		      ha_gpu_psn(e->link.local.psn, p->incarnation) <
	      1000);
	ha_gpu_store(&job.fabric->nic[1].link, 0);
	ha_gpu_store(&job.fabric->nic[1].reported, 1);
	wait_until_failed(c, 0);
	soft_nic_heal(&job.fabric->nic[1]);
	exchange_data();
	CHECK(p->incarnation >= 1);
	first = ha_gpu_psn(e->link.local.psn, p->incarnation);
	CHECK(((first - e->link.local.psn) & 0xffffff) > 1 << 16 &&
	      ((e->link.local.psn - first) & 0xffffff) > 1 << 16);
	CHECK(number_of(&job.fabric->nic[0], c->path[0].qpn, false) - first < 1000);
	CHECK(number_of(&job.fabric->nic[1], find_conn(1, 0, 0)->path[0].qpn, true) - first < 1000);
	end_job();
}

/* ---- a port that comes back with another address ---- */

/* This end has connected its queue pair for the next incarnation. */
static void wait_until_joined(struct ha_gpu_conn *c, unsigned path)
{
	for (uint64_t end = ha_gpu_now() + 120 * SECOND;
	     ha_gpu_load(&c->health[path]) != HA_GPU_RECOVERING; usleep(1000))
		CHECK(ha_gpu_now() < end);
}

static void wait_for_path(struct ha_gpu_conn *c, uint64_t path)
{
	for (uint64_t end = ha_gpu_now() + 120 * SECOND; ha_gpu_load(&c->active) != path;
	     usleep(1000))
		CHECK(ha_gpu_now() < end);
}

static void cut_link(unsigned nic)
{
	ha_gpu_store(&job.fabric->nic[nic].link, 0);
	ha_gpu_store(&job.fabric->nic[nic].reported, 1);
}

static void back_at(unsigned nic, uint64_t address)
{
	ha_gpu_store(&job.fabric->nic[nic].address, address);
	soft_nic_heal(&job.fabric->nic[nic]);
}

static void primary_is_back(void)
{
	wait_for_path(find_conn(0, 0, 1), 0);
	wait_for_path(find_conn(1, 0, 0), 0);
	exchange_data();
}

/* Addresses were read once, at the open: a path whose port came back with another LID or GID was
 * never made again. */
static void another_address(void)
{
	start_job(2, 2, job_connect_1_1);
	exchange_data();
	for (unsigned i = 0; i < 3; i++) { /* the peer's, ours, both */
		for (unsigned nic = 0; nic <= 2; nic += 2)
			if (i == 2 || nic == (i ? 0 : 2))
				cut_link(nic);
		wait_for_path(find_conn(0, 0, 1), 1);
		wait_for_path(find_conn(1, 0, 0), 1);
		exchange_data();
		for (unsigned nic = 0; nic <= 2; nic += 2)
			if (i == 2 || nic == (i ? 0 : 2))
				back_at(nic, 100 * (i + 1) + nic);
		primary_is_back();
	}
	end_job();
}

/* The other end has begun the next incarnation already, with the old address. */
static void another_address_after_a_join(void)
{
	start_job(2, 2, job_connect_1_1);
	exchange_data();
	cut_link(2);
	wait_until_joined(find_conn(0, 0, 1), 0);
	back_at(2, 100);
	primary_is_back();
	/* the incarnation of its completions */
	CHECK(ha_gpu_load(&find_conn(0, 0, 1)->path[0].cq_ci) >> 48 >= 2);
	end_job();
}

/* A queue pair whose NIC takes its time to drain was stopped anew at each look, which on hardware
 * is a command to the firmware. */
static void stopped_once(void)
{
	const struct flaky *f = &job.pe[0].flaky;
	uint64_t stops, end = ha_gpu_now() + 120 * SECOND;
	struct ha_gpu_conn *c;

	start_job(2, 2, job_connect_1_1);
	exchange_data();
	c = find_conn(0, 0, 1);
	soft_nic_starve(&job.fabric->nic[0]);
	stops = ha_gpu_load(&f->stops);
	CHECK_INT(ha_gpu_signal(c, 9, 1, 0, SECOND), HA_GPU_DONE);
	for (uint64_t looks = ha_gpu_load(&f->looks); ha_gpu_load(&f->looks) < looks + 50;
	     usleep(1000))
		CHECK(ha_gpu_now() < end);
	/* this row's, and the other's backup, which is on the same NIC */
	CHECK(ha_gpu_load(&f->stops) - stops <= 2);
	ha_gpu_store(&job.fabric->nic[0].pace, 0);
	primary_is_back();
	end_job();
}

/* ---- growth while kernels run ---- */

static uint64_t enough;

static void *run_kernel(void *arg)
{
	struct job_pe *p = arg;
	struct ha_gpu_conn *c = ha_gpu_world_conn(p->world, 0, (uint32_t)!p->pe);
	uint64_t posted = 0, *mine = (uint64_t *)p->heap;

	ha_gpu_world_enter(p->world);
	while (!ha_gpu_load(&enough) || posted < 50) {
		*mine = ++posted;
		CHECK_INT(ha_gpu_put_nbi(c, c->remote + 4096, mine, 8, 0, 120 * SECOND),
			  HA_GPU_DONE);
		CHECK_INT(ha_gpu_signal(c, 1, 1, 0, 120 * SECOND), HA_GPU_DONE);
		CHECK_INT(ha_gpu_quiet(c, 120 * SECOND), HA_GPU_DONE);
	}
	CHECK_INT(ha_gpu_signal(c, 2, posted, 0, 120 * SECOND), HA_GPU_DONE);
	CHECK_INT(ha_gpu_wait(c, 2, 1, 120 * SECOND), HA_GPU_DONE);
	CHECK_INT(ha_gpu_signal_value(c, 1), ha_gpu_signal_value(c, 2));
	CHECK_INT(*(uint64_t *)(p->heap + 4096), ha_gpu_signal_value(c, 1));
	CHECK_INT(ha_gpu_quiet(c, 120 * SECOND), HA_GPU_DONE);
	ha_gpu_world_leave(p->world);
	return NULL;
}

static void growth_under_kernels(void)
{
	pthread_t t[2];

	start_job(2, 2, job_connect_1_1);
	ha_gpu_store(&enough, 0);
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&t[i], NULL, run_kernel, &job.pe[i]));
	for (int i = 0; i < 3; i++) {
		job_all(&job, i == 1 ? job_connect_2_1 : job_connect_1_1);
		job_want(&job, 0);
	}
	ha_gpu_store(&enough, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	exchange_data();
	end_job();
}

/* ---- kernels that do not end ---- */

/* Hang: a kernel of before is not done at the next launch. It is told apart from one that is, and
 * from one that died. */
static void unfinished_kernel(void)
{
	struct ha_gpu_slots s;
	struct ha_gpu_conn *c;
	uint64_t idle = 0;

	start_job(2, 2, job_connect_1_1);
	c = find_conn(0, 0, 1);
	ha_gpu_world_enter(job.pe[0].world);
	CHECK_INT(ha_gpu_host_launch(job.pe[0].host, 20), -EBUSY);
	/* It dies: with slots that it never publishes behind a signal that nobody has proved, the
	 * doorbell's lock, and a fetch-add under way. */
	CHECK_INT(ha_gpu_signal(c, 1, 1, 0, SECOND), HA_GPU_DONE);
	CHECK_INT(ha_gpu_reserve(c, 5, SECOND, &s), HA_GPU_DONE);
	usleep(50000);
	CHECK(ha_gpu_cas(&c->bell, &idle, 1));
	ha_gpu_store(&c->asking, 1);
	CHECK(ha_gpu_host_repair(job.pe[0].host) >= 5);
	CHECK(!ha_gpu_host_launch(job.pe[0].host, 20));
	exchange_data();
	/* A switch of path must get through as well. */
	job_kill(&job, 0, 0, true);
	exchange_data();
	CHECK_INT(ha_gpu_load(&c->active), 1);
	end_job();
}

static uint64_t add_there(uint64_t add)
{
	struct ha_gpu_conn *c = find_conn(0, 0, 1);
	uint64_t old = 0;
	bool posted;

	CHECK_INT(ha_gpu_fetch_add(c, c->remote + 8, add, &old, &posted, 1000000), HA_GPU_TIMEOUT);
	CHECK(posted);
	for (uint64_t end = ha_gpu_now() + 120 * SECOND;
	     !ha_gpu_serve(find_conn(1, 0, 0)) ||
	     find_conn(1, 0, 0)->served != find_conn(1, 0, 0)->answered;
	     usleep(100))
		CHECK(ha_gpu_now() < end);
	CHECK_INT(ha_gpu_fetch_add_wait(c, &old, 120 * SECOND), HA_GPU_DONE);
	return old;
}

/* A kernel dies with two slots reserved, where an incarnation before has left the last request's
 * signal: repair took it for one that was never published, and the request after that was answered
 * with the old answer, and not done. */
static void signal_of_an_older_incarnation(void)
{
	uint32_t word[7] = { 0 };
	struct ha_gpu_slots s;
	struct ha_gpu_conn *c;

	start_job(2, 2, job_connect_1_1);
	c = find_conn(0, 0, 1);
	*(uint64_t *)(job.pe[1].heap + 8) = 100;
	CHECK_INT(add_there(5), 100);
	CHECK_INT(ha_gpu_reserve(c, 2, SECOND, &s), HA_GPU_DONE);
	word[0] = (uint32_t)c->sent[HA_GPU_SIGNAL_ASK];
	ha_gpu_write_inline(c, ha_gpu_active_path(c), ha_gpu_entry_index(&s, 1),
			    ha_gpu_slot_address(c, ha_gpu_active_path(c), HA_GPU_SIGNAL_ASK),
			    ha_gpu_active_path(c)->mailbox_key, word, 8, 0);
	CHECK(ha_gpu_host_repair(job.pe[0].host) >= 2);
	CHECK_INT(add_there(7), 105);
	CHECK_INT(*(uint64_t *)(job.pe[1].heap + 8), 112);
	exchange_data();
	end_job();
}

/* A kernel that has ended with work outstanding is no hindrance: the log goes on. */
static void launch_over_outstanding(void)
{
	struct ha_gpu_conn *c;

	start_job(2, 2, job_connect_1_1);
	c = find_conn(0, 0, 1);
	ha_gpu_store(&job.fabric->nic[0].pace, 1 << 20);
	ha_gpu_world_enter(job.pe[0].world);
	for (int i = 0; i < 20; i++)
		CHECK_INT(ha_gpu_put_nbi(c, c->remote + (3 << 14), job.pe[0].heap, 64, HA_GPU_LATER,
					 SECOND),
			  HA_GPU_DONE);
	ha_gpu_world_leave(job.pe[0].world);
	CHECK(!ha_gpu_host_launch(job.pe[0].host, 20));
	ha_gpu_store(&job.fabric->nic[0].pace, 0);
	exchange_data();
	end_job();
}

/* ---- the end ---- */

static unsigned limit_ms[2]; /* of each process */
static struct ha_gpu_slots reserved;

static void *finalize_soon(void *arg)
{
	struct job_pe *p = arg;

	p->result = ha_gpu_host_finalize(p->host, limit_ms[p->pe]);
	if (p->result != -EBUSY)
		p->host = NULL;
	return NULL;
}

/* Work that no NIC executes any more: it is given up after the limit, everything is given back, and
 * it never lands. */
static void finalize_outstanding(void)
{
	struct ha_gpu_conn *c;

	start_job(2, 2, job_connect_2_2);
	c = find_conn(0, 0, 1);
	memset(job.pe[0].heap, 0x77, 64);
	job.pe[1].heap[0] = 0;
	for (int i = 0; i < 2; i++)
		soft_nic_starve(&job.fabric->nic[i]);
	CHECK_INT(ha_gpu_put_nbi(c, c->remote, job.pe[0].heap, 64, 0, SECOND), HA_GPU_DONE);
	limit_ms[0] = 100;
	limit_ms[1] = 20000; /* it has nothing to wait for, but perhaps for a processor */
	job_all(&job, finalize_soon);
	CHECK_INT(job.pe[0].result, -ETIMEDOUT);
	CHECK_INT(job.pe[1].result, 0);
	for (int i = 0; i < 2; i++)
		ha_gpu_store(&job.fabric->nic[i].pace, 0);
	usleep(20000);
	CHECK_INT(job.pe[1].heap[0], 0);
	job_end(&job);
}

/* The last that it does with the connection, which is given back then: the end rings. */
static void *publish_later(void *arg)
{
	usleep(50000);
	ha_gpu_publish(arg, &reserved);
	return NULL;
}

/* An agent proves an idle connection by a read of its own, whenever it likes: what it had reserved
 * and not published when the end looked was given up at once. */
static void finalize_while_an_agent_posts(void)
{
	struct ha_gpu_conn *c;
	pthread_t agent;

	start_job(2, 2, job_connect_1_1);
	c = find_conn(0, 0, 1);
	CHECK_INT(ha_gpu_reserve(c, 1, SECOND, &reserved), HA_GPU_DONE);
	ha_gpu_write_proofs(c, ha_gpu_active_path(c), &reserved);
	CHECK(!pthread_create(&agent, NULL, publish_later, c));
	limit_ms[0] = limit_ms[1] = 20000;
	job_all(&job, finalize_soon);
	CHECK(!pthread_join(agent, NULL));
	job_want(&job, 0);
	job_end(&job);
}

static void finalize_under_a_kernel(void)
{
	start_job(2, 2, job_connect_1_1);
	ha_gpu_world_enter(job.pe[1].world);
	limit_ms[0] = limit_ms[1] = 100;
	job_all(&job, finalize_soon);
	job_want(&job, -EBUSY);
	exchange_data(); /* nothing was touched */
	ha_gpu_world_leave(job.pe[1].world);
	end_job();
}

static void each_call_fails(void)
{
	CHECK(job_each_call_fails(&job,
				  (void *(*const[])(void *)) { job_connect_2_1, job_connect_1_1 },
				  2, exchange_data) >= 60);
}

static const struct named_test tests[] = {
	{ "all_to_all", all_to_all },
	{ "alone", one_rank_alone },
	{ "key_tables", key_tables },
	{ "unlike_settings", unlike_settings },
	{ "unlike_numbers", unlike_numbers },
	{ "qpn_of_its_own", qpn_of_its_own },
	{ "growth_keeps_what_is", growth_keeps_what_is },
	{ "dead_at_the_start", dead_at_the_start },
	{ "nothing_is_up", nothing_is_up },
	{ "without_backup", without_backup },
	{ "fresh_numbers", fresh_numbers },
	{ "stopped_once", stopped_once },
	{ "another_address", another_address },
	{ "another_address_after_a_join", another_address_after_a_join },
	{ "growth_under_kernels", growth_under_kernels },
	{ "unfinished_kernel", unfinished_kernel },
	{ "signal_of_an_older_incarnation", signal_of_an_older_incarnation },
	{ "launch_over_outstanding", launch_over_outstanding },
	{ "finalize_outstanding", finalize_outstanding },
	{ "finalize_while_an_agent_posts", finalize_while_an_agent_posts },
	{ "finalize_under_a_kernel", finalize_under_a_kernel },
	{ "each_call_fails", each_call_fails },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
