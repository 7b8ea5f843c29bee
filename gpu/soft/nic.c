/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/soft/nic.h"

#include "gpu/device/wqe.h"
#include "gpu/soft/lock.h"
#include "gpu/soft/posted.h"
#include "gpu/soft/send.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define FIRST_QPN 0x40
#define RETRY_NS 1000000

static size_t round_up(size_t n)
{
	return (n + 63) & ~(size_t)63;
}

void soft_fabric_clear(struct soft_fabric *f)
{
	uint32_t nics = f->nnics;
	size_t bytes = f->bytes, used = f->used ? f->used : bytes;

	memset(f, 0, used);
	f->bytes = bytes;
	f->used = round_up(sizeof(*f));
	f->nnics = nics;
	for (uint32_t i = 0; i < nics; i++) {
		f->nic[i].fabric = f;
		f->nic[i].number = i;
		f->nic[i].address = i;
		f->nic[i].link = 1;
		f->nic[i].retry_ns = f->nic[i].rnr_ns = RETRY_NS;
	}
}

struct soft_fabric *soft_fabric_open(unsigned nics, size_t bytes)
{
	struct soft_fabric *f;

	bytes = round_up(bytes) + round_up(sizeof(*f));
	if (!nics || nics > SOFT_NICS_MAX)
		return NULL;
	f = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f == MAP_FAILED)
		return NULL;
	f->bytes = bytes;
	f->nnics = nics;
	soft_fabric_clear(f);
	return f;
}

void soft_fabric_close(struct soft_fabric *f)
{
	munmap(f, f->bytes);
}

/* Several processes take of it. */
void *soft_alloc(struct soft_fabric *f, size_t bytes)
{
	void *p = NULL;

	soft_lock(&f->alloc_lock);
	if (round_up(bytes) <= f->bytes - f->used) {
		p = (char *)f + f->used;
		f->used += round_up(bytes);
	}
	soft_unlock(&f->alloc_lock);
	return p;
}

/* The key carries the NIC's number, so that no key is right on two of them. */
uint32_t soft_mr_register(struct soft_nic *n, const void *address, size_t bytes, bool remote)
{
	const char *from = address, *base = (const char *)n->fabric;
	uint64_t n_mrs = ha_gpu_load(&n->nmrs), i = 0;
	struct soft_mr *mr;

	while (i < n_mrs && n->mr[i].key)
		i++;
	mr = &n->mr[i];
	if (i == SOFT_MRS_MAX || from < base || bytes > n->fabric->bytes ||
	    (size_t)(from - base) > n->fabric->bytes - bytes)
		return 0;
	mr->address = (uint64_t)(uintptr_t)address;
	mr->bytes = bytes;
	mr->remote = remote;
	mr->key = (uint32_t)(i + 1) << 8 | (0x11 * (n->number + 1) & 0xff);
	if (i == n_mrs)
		ha_gpu_store(&n->nmrs, i + 1);
	return mr->key;
}

int soft_mr_deregister(struct soft_nic *n, uint32_t key)
{
	for (uint64_t i = 0; key && i < ha_gpu_load(&n->nmrs); i++)
		if (n->mr[i].key == key) {
			n->mr[i].key = 0;
			return 0;
		}
	return -ENOENT;
}

static bool make_cq(struct soft_fabric *f, struct soft_cq *cq, uint32_t log, uint8_t *cqe,
		    uint32_t *dbrec)
{
	size_t bytes = (size_t)HA_GPU_CQE_BYTES << log;

	cq->log = log;
	cq->pi = 0;
	cq->cqe = cqe ? cqe : soft_alloc(f, bytes);
	cq->dbrec = NULL;
	if (log)
		cq->dbrec = dbrec ? dbrec : soft_alloc(f, 8);
	if (!cq->cqe || (log && !cq->dbrec))
		return false;
	memset(cq->cqe, 0xff, bytes);
	return true;
}

/*
 * Under make_lock, until it is counted. Its number stays the same for good: others compare it while
 * it is nobody's.
 */
static struct soft_qp *free_qp(struct soft_nic *n)
{
	uint64_t n_qps = ha_gpu_load(&n->nqps), i = 0;

	while (i < n_qps && !ha_gpu_load(&n->qp[i].destroyed))
		i++;
	if (i == SOFT_QPS_MAX)
		return NULL;
	if (i == n_qps) {
		n->qp[i].nic = n;
		n->qp[i].qpn = FIRST_QPN + (uint32_t)i;
	}
	return &n->qp[i];
}

static struct soft_qp *count_qp(struct soft_qp *qp)
{
	uint64_t i = (uint64_t)(qp - qp->nic->qp);

	ha_gpu_store(&qp->destroyed, 0);
	if (i == ha_gpu_load(&qp->nic->nqps))
		ha_gpu_store(&qp->nic->nqps, i + 1);
	return qp;
}

struct soft_qp *soft_dct_create(struct soft_nic *n, uint64_t key)
{
	struct soft_qp *qp;

	soft_lock(&n->make_lock);
	qp = free_qp(n);
	if (!qp) {
		soft_unlock(&n->make_lock);
		return NULL;
	}
	soft_lock(&qp->sq_lock);
	soft_lock(&qp->rx.lock);
	qp->kind = SOFT_DCT;
	qp->state = SOFT_RTR;
	qp->dc.key = key;
	qp->dc.forget = 0;
	memset(qp->dc.known, 0, sizeof(qp->dc.known));
	qp->rx.accepts = true;
	soft_unlock(&qp->rx.lock);
	soft_unlock(&qp->sq_lock);
	count_qp(qp);
	soft_unlock(&n->make_lock);
	return qp;
}

static bool is_queue_length(unsigned nwqes)
{
	return nwqes && nwqes <= 32768 && !(nwqes & (nwqes - 1));
}

static struct soft_qp *make_qp(struct soft_nic *n, const struct soft_qp_attr *attr)
{
	struct soft_fabric *f = n->fabric;
	struct soft_qp *qp = free_qp(n);

	if (!qp || !is_queue_length(attr->nwqes))
		return NULL;
	soft_lock(&qp->sq_lock);
	qp->kind = attr->dci ? SOFT_DCI : SOFT_RC;
	soft_unlock(&qp->sq_lock);
	qp->nwqes = attr->nwqes;
	qp->wqe = attr->wqe ? attr->wqe : soft_alloc(f, (size_t)attr->nwqes * HA_GPU_WQE_BYTES);
	qp->dbrec = attr->dbrec ? attr->dbrec : soft_alloc(f, 8);
	if (!qp->bf)
		qp->bf = soft_alloc(f, 8);
	if (!qp->wqe || !qp->dbrec || !qp->bf ||
	    !make_cq(f, &qp->send, attr->cq_log, attr->cqe, attr->cq_dbrec))
		return NULL;
	if (!qp->receive.cqe &&
	    !make_cq(f, &qp->receive, attr->receive_log ? attr->receive_log : 1, NULL, NULL))
		return NULL;
	return count_qp(qp);
}

struct soft_qp *soft_qp_create(struct soft_nic *n, const struct soft_qp_attr *attr)
{
	struct soft_qp *qp;

	soft_lock(&n->make_lock);
	qp = make_qp(n, attr);
	soft_unlock(&n->make_lock);
	return qp;
}

/*
 * What was under way to it does not land: its incarnation is over. Its receive queue and its
 * register stay for the next with this number.
 */
void soft_qp_destroy(struct soft_qp *qp)
{
	soft_lock(&qp->sq_lock);
	soft_lock(&qp->rx.lock);
	qp->state = SOFT_RESET;
	qp->rx.accepts = false;
	qp->rx.incarnation++;
	qp->ci = qp->pi = 0;
	ha_gpu_store(&qp->broken, 0);
	ha_gpu_store(&qp->destroyed, 1);
	soft_unlock(&qp->rx.lock);
	soft_unlock(&qp->sq_lock);
}

/* No completion of an older incarnation may be taken for one of the new. */
static void clear_cq(struct soft_cq *cq)
{
	for (uint32_t i = 0; i < 1u << cq->log; i++)
		ha_gpu_store((uint64_t *)(cq->cqe + i * HA_GPU_CQE_BYTES + HA_GPU_CQE_QPN),
			     UINT64_MAX);
	cq->pi = 0;
	if (cq->dbrec)
		ha_gpu_store32(cq->dbrec, 0);
}

static void to_reset(struct soft_qp *qp)
{
	qp->state = SOFT_RESET;
	qp->ci = qp->pi = qp->rx.ci = 0;
	qp->psn = qp->rx.expected = 0;
	qp->unanswered_since = 0;
	qp->unacked = false;
	qp->rx.accepts = false;
	ha_gpu_store(&qp->broken, 0);
	qp->rx.incarnation++;
	qp->dc.session++;
	clear_cq(&qp->send);
	clear_cq(&qp->receive);
	ha_gpu_store32(&qp->dbrec[HA_GPU_DBR_SEND], 0);
	ha_gpu_store32(&qp->dbrec[HA_GPU_DBR_RECEIVE], 0);
	ha_gpu_store(qp->bf, 0);
	qp->bell = 0;
}

static int change_state(struct soft_qp *qp, enum soft_state to, uint32_t peer_nic,
			uint32_t peer_qpn)
{
	if (qp->kind == SOFT_DCT && to != SOFT_ERR)
		return -EINVAL;
	if (to == SOFT_RESET || to == SOFT_ERR)
		soft_posted_flush(qp->nic);
	if (to == SOFT_RESET) {
		to_reset(qp);
		return 0;
	}
	if (to == SOFT_ERR) {
		qp->rx.accepts = false;
		qp->state = SOFT_ERR;
		return 0;
	}
	if (qp->state == SOFT_ERR || to != qp->state + 1)
		return -EINVAL;
	if (to == SOFT_RTR) {
		if (peer_nic >= qp->nic->fabric->nnics)
			return -EINVAL;
		qp->peer_nic = peer_nic;
		qp->peer_qpn = peer_qpn;
		qp->peer_address =
			__atomic_load_n(&qp->nic->fabric->nic[peer_nic].address, __ATOMIC_RELAXED);
		qp->rx.accepts = qp->kind == SOFT_RC;
	}
	qp->state = to;
	return 0;
}

int soft_qp_modify(struct soft_qp *qp, enum soft_state to, uint32_t peer_nic, uint32_t peer_qpn)
{
	bool gone = ha_gpu_load(&qp->nic->power) == SOFT_DEAD;
	int result;

	soft_lock(&qp->sq_lock);
	soft_lock(&qp->rx.lock);
	result = gone && to != SOFT_ERR ? -EIO : change_state(qp, to, peer_nic, peer_qpn);
	soft_unlock(&qp->rx.lock);
	soft_unlock(&qp->sq_lock);
	return gone ? -EIO : result;
}

void soft_qp_number(struct soft_qp *qp, uint64_t psn, uint64_t expected)
{
	soft_lock(&qp->sq_lock);
	soft_lock(&qp->rx.lock);
	qp->psn = psn;
	qp->rx.expected = expected;
	soft_unlock(&qp->rx.lock);
	soft_unlock(&qp->sq_lock);
}

bool soft_qp_drained(struct soft_qp *qp)
{
	bool drained;

	soft_lock(&qp->sq_lock);
	soft_send_bell(qp);
	drained = qp->state == SOFT_ERR &&
		  (qp->ci == qp->pi || ha_gpu_load(&qp->nic->power) != SOFT_ON);
	soft_unlock(&qp->sq_lock);
	return drained;
}

static void move_on(struct soft_nic *n)
{
	if (n->fabric->moves)
		__atomic_fetch_add(&n->address, SOFT_NICS_MAX, __ATOMIC_RELAXED);
}

static void link_returns(struct soft_nic *n)
{
	uint64_t back = ha_gpu_load(&n->link_back_ns);

	if (back && ha_gpu_now() >= back) {
		move_on(n);
		ha_gpu_store(&n->link_back_ns, 0);
		ha_gpu_store(&n->link, 1);
	}
}

bool soft_nic_step(struct soft_nic *n)
{
	bool worked;

	if (ha_gpu_load(&n->power) != SOFT_ON)
		return false;
	link_returns(n);
	soft_fault_step(n);
	if (ha_gpu_load(&n->idle_steps) < ha_gpu_load(&n->pace)) {
		ha_gpu_store(&n->idle_steps, ha_gpu_load(&n->idle_steps) + 1);
		return false;
	}
	ha_gpu_store(&n->idle_steps, 0);
	worked = soft_land_due(n);
	worked |= soft_posted_land(n);
	for (uint64_t i = 0; i < ha_gpu_load(&n->nqps); i++) {
		soft_lock(&n->qp[i].sq_lock);
		worked |= soft_send_step(&n->qp[i]);
		soft_unlock(&n->qp[i].sq_lock);
	}
	return worked;
}

void soft_nic_starve(struct soft_nic *n)
{
	uint64_t seen;

	ha_gpu_store(&n->pace, UINT64_MAX);
	seen = ha_gpu_load(&n->idle_steps);
	/* The step that is under way may have read the pace before. */
	while (ha_gpu_load(&n->idle_steps) < seen + 2)
		ha_gpu_pause();
}

void *soft_nic_run(void *nic)
{
	struct soft_nic *n = nic;

	while (!ha_gpu_load(&n->stop))
		if (!soft_nic_step(n))
			ha_gpu_pause();
	return NULL;
}

void *soft_nic_serve(void *nic)
{
	const struct timespec nap = { 0, 100000 };
	struct soft_nic *n = nic;

	while (!ha_gpu_load(&n->stop))
		if (!soft_nic_step(n))
			nanosleep(&nap, NULL);
	return NULL;
}

enum soft_port soft_nic_port(struct soft_nic *n)
{
	if (!ha_gpu_load(&n->reported))
		return SOFT_PORT_UP;
	if (ha_gpu_load(&n->power) == SOFT_DEAD)
		return SOFT_PORT_GONE;
	return ha_gpu_load(&n->power) == SOFT_ON && ha_gpu_load(&n->link) ? SOFT_PORT_UP
									  : SOFT_PORT_DOWN;
}

struct soft_nic *soft_nic_at(struct soft_fabric *f, uint64_t address)
{
	for (uint32_t i = 0; i < f->nnics; i++)
		if (__atomic_load_n(&f->nic[i].address, __ATOMIC_RELAXED) == address)
			return &f->nic[i];
	return NULL;
}

void soft_nic_dies_after(struct soft_nic *n, uint64_t entries)
{
	n->fault = (struct soft_fault) {
		.armed = true, .at = n->entries + entries, .then = SOFT_THEN_DIE, .announced = true
	};
}

void soft_nic_heal(struct soft_nic *n)
{
	bool gone = ha_gpu_load(&n->power) == SOFT_DEAD;

	for (uint64_t i = 0; gone && i < ha_gpu_load(&n->nqps); i++) {
		soft_lock(&n->qp[i].rx.lock);
		n->qp[i].rx.accepts = false;
		ha_gpu_store(&n->qp[i].broken, !ha_gpu_load(&n->qp[i].destroyed));
		soft_unlock(&n->qp[i].rx.lock);
	}
	if (gone)
		soft_posted_drop(n);
	if (gone || !__atomic_load_n(&n->link, __ATOMIC_RELAXED))
		move_on(n);
	ha_gpu_store(&n->link_back_ns, 0);
	ha_gpu_store(&n->link, 1);
	ha_gpu_store(&n->reported, 0);
	ha_gpu_store(&n->power, SOFT_ON);
}
