/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/soft/send.h"

#include "gpu/device/wqe.h"
#include "gpu/soft/lock.h"
#include "gpu/soft/posted.h"

#include <string.h>

/* a fault that has begun comes to its end, though no more entries come */
#define FAULT_NS 20000

/* What became of a request. */
enum outcome { LANDED, UNANSWERED, NOT_READY, NO_ACCESS, BAD_LOCAL, BAD_ENTRY };

struct request {
	enum ha_gpu_opcode op;
	uint64_t remote, local, bytes, add;
	uint32_t rkey, lkey, imm;
	bool in_entry;
	uint8_t data[HA_GPU_INLINE_MAX] __attribute__((aligned(8))); /* words are moved whole */
};

void soft_send_bell(struct soft_qp *qp)
{
	uint64_t bell = ha_gpu_load(qp->bf);

	if (bell == qp->bell)
		return;
	qp->bell = bell;
	qp->pi = (uint16_t)ha_gpu_be32(
		__atomic_load_n(&qp->dbrec[HA_GPU_DBR_SEND], __ATOMIC_ACQUIRE));
}

const struct soft_mr *soft_mr_find(const struct soft_nic *n, uint32_t key, uint64_t address,
				   uint64_t bytes, bool remote)
{
	uint32_t i = (key >> 8) - 1;
	const struct soft_mr *mr = &n->mr[i];

	if (i >= ha_gpu_load(&n->nmrs) || mr->key != key || (remote && !mr->remote))
		return NULL;
	return address >= mr->address && bytes <= mr->bytes &&
			       address - mr->address <= mr->bytes - bytes
		       ? mr
		       : NULL;
}

static bool is_write(enum ha_gpu_opcode op)
{
	return op == HA_GPU_OP_WRITE || op == HA_GPU_OP_WRITE_IMM;
}

/* The data stand in the entry itself. */
static enum outcome parse_inline(const struct ha_gpu_wqe *e, struct request *r)
{
	r->bytes &= ~(uint64_t)HA_GPU_INLINE;
	r->in_entry = true;
	if (r->bytes > HA_GPU_INLINE_MAX || ha_gpu_wqe_ds(e) != 2 + (4 + r->bytes + 15) / 16)
		return BAD_ENTRY;
	memcpy(r->data, (const uint8_t *)e + 36, r->bytes);
	return LANDED;
}

/* The data stand in local memory, whose segment begins at word `at`. */
static enum outcome parse_local(const struct ha_gpu_wqe *e, unsigned at, struct request *r)
{
	r->bytes = ha_gpu_be32((uint32_t)e->w[at]);
	r->lkey = ha_gpu_be32((uint32_t)(e->w[at] >> 32));
	r->local = ha_gpu_be64(e->w[at + 1]);
	return ha_gpu_wqe_ds(e) == (at + 2) / 2u ? LANDED : BAD_ENTRY;
}

static enum outcome parse_entry(const struct soft_qp *qp, const struct ha_gpu_wqe *e,
				struct request *r)
{
	memset(r, 0, sizeof(*r));
	r->op = (enum ha_gpu_opcode)ha_gpu_wqe_opcode(e);
	if (ha_gpu_wqe_index(e) != qp->ci || ha_gpu_wqe_qpn(e) != qp->qpn)
		return BAD_ENTRY;
	if (r->op == HA_GPU_OP_NOP)
		return ha_gpu_wqe_ds(e) >= 1 ? LANDED : BAD_ENTRY;
	r->remote = ha_gpu_wqe_raddr(e);
	r->rkey = ha_gpu_be32((uint32_t)e->w[3]);
	r->imm = (uint32_t)(e->w[1] >> 32);
	r->bytes = ha_gpu_be32((uint32_t)e->w[4]);
	if (is_write(r->op) && r->bytes & HA_GPU_INLINE)
		return parse_inline(e, r);
	if (is_write(r->op) || r->op == HA_GPU_OP_READ)
		return parse_local(e, 4, r);
	if (r->op != HA_GPU_OP_FETCH_ADD)
		return BAD_ENTRY;
	r->add = ha_gpu_be64(e->w[4]);
	return parse_local(e, 6, r) == LANDED && r->bytes == 8 ? LANDED : BAD_ENTRY;
}

/*
 * An initiator's entry: as one of a connected queue pair, and its target. A conversation with
 * another begins anew.
 */
static enum outcome take_target(struct soft_qp *qp, struct ha_gpu_wqe *e)
{
	const struct ha_gpu_wqe first = *e;
	struct ha_gpu_wqe second;
	uint64_t key = ha_gpu_be64(first.w[2]);
	uint32_t number = ha_gpu_be32((uint32_t)first.w[3]), nic = (uint32_t)first.w[7];

	qp->blocks = (ha_gpu_wqe_ds(&first) + 3) / 4;
	if (ha_gpu_wqe_opcode(&first) == HA_GPU_OP_NOP)
		return LANDED;
	if (qp->blocks != 2 || !(number & HA_GPU_AV_EXTENDED) ||
	    first.w[7] >= qp->nic->fabric->nnics)
		return BAD_ENTRY;
	memcpy(&second, qp->wqe + ((qp->ci + 1) & (qp->nwqes - 1)) * HA_GPU_WQE_BYTES,
	       sizeof(second));
	ha_gpu_wqe_narrow(e, &first, &second);
	number &= 0xffffff;
	if (key == qp->dc.key && number == qp->peer_qpn && nic == qp->peer_nic)
		return LANDED;
	qp->dc.key = key;
	qp->peer_qpn = number;
	qp->peer_nic = nic;
	qp->peer_address = __atomic_load_n(&qp->nic->fabric->nic[nic].address, __ATOMIC_RELAXED);
	qp->dc.session++;
	qp->psn = 0;
	return LANDED;
}

/* Executes the request at the peer's memory; under its rx.lock, once per number. */
static enum outcome execute_request(struct soft_qp *peer, const struct request *r, uint64_t *answer)
{
	if (r->bytes && !soft_mr_find(peer->nic, r->rkey, r->remote, r->bytes, true))
		return NO_ACCESS;
	if (r->op == HA_GPU_OP_WRITE_IMM) {
		if (peer->kind == SOFT_DCT ||
		    peer->rx.ci == (uint16_t)ha_gpu_be32(__atomic_load_n(
					   &peer->dbrec[HA_GPU_DBR_RECEIVE], __ATOMIC_ACQUIRE)))
			return NOT_READY;
		peer->rx.ci++;
	}
	if (r->op == HA_GPU_OP_READ || r->op == HA_GPU_OP_FETCH_ADD)
		soft_posted_order(peer->nic, r->remote);
	if (r->op == HA_GPU_OP_READ)
		soft_copy_data(r->local, r->remote, r->bytes);
	else if (r->op == HA_GPU_OP_FETCH_ADD)
		*answer = ha_gpu_add((uint64_t *)(uintptr_t)r->remote, r->add);
	else
		soft_posted_write(peer->nic, r->remote,
				  r->in_entry ? (uint64_t)(uintptr_t)r->data : r->local, r->bytes);
	if (r->op == HA_GPU_OP_WRITE_IMM)
		soft_complete(peer, &peer->receive, HA_GPU_CQE_RESP_WRITE_IMM, 0,
			      (uint16_t)(peer->rx.ci - 1), (uint32_t)r->bytes, r->imm);
	return LANDED;
}

static struct soft_qp *peer_of(struct soft_qp *qp)
{
	struct soft_nic *n = &qp->nic->fabric->nic[qp->peer_nic];

	if (__atomic_load_n(&n->address, __ATOMIC_RELAXED) != qp->peer_address)
		return NULL;
	for (uint64_t i = 0; i < ha_gpu_load(&n->nqps); i++)
		if (n->qp[i].qpn == qp->peer_qpn)
			return &n->qp[i];
	return NULL;
}

static bool is_reachable(const struct soft_nic *from, const struct soft_nic *to)
{
	return ha_gpu_load(&from->link) && ha_gpu_load(&to->link) &&
	       ha_gpu_load(&to->power) == SOFT_ON;
}

struct sender {
	uint32_t nic, qpn;
	uint64_t session;
};

/* Whose numbers count at this end: NULL, of a conversation that is over. */
static uint64_t *find_expected(struct soft_qp *peer, const struct sender *from, uint64_t **answer)
{
	struct soft_session *t = NULL;

	*answer = &peer->rx.answer;
	if (peer->kind != SOFT_DCT)
		return &peer->rx.expected;
	for (unsigned i = 0; i < SOFT_SESSIONS_MAX && !t; i++)
		if (peer->dc.known[i].qpn == from->qpn && peer->dc.known[i].nic == from->nic)
			t = &peer->dc.known[i];
	if (t && t->session > from->session)
		return NULL;
	if (!t || t->session < from->session) {
		t = t ? t : &peer->dc.known[peer->dc.forget++ % SOFT_SESSIONS_MAX];
		*t = (struct soft_session) { .nic = from->nic,
					     .qpn = from->qpn,
					     .session = from->session };
	}
	*answer = &t->answer;
	return &t->expected;
}

static bool can_accept(const struct soft_qp *peer, const struct soft_qp *qp)
{
	if (!peer->rx.accepts || (peer->kind == SOFT_DCT) != (qp->kind == SOFT_DCI))
		return false;
	return peer->kind == SOFT_DCT
		       ? peer->dc.key == qp->dc.key
		       : peer->peer_qpn == qp->qpn && peer->peer_nic == qp->nic->number;
}

/*
 * The request arrives: right incarnation, right number, then it is executed; a number that has been
 * is only answered.
 */
static enum outcome deliver_request(struct soft_qp *qp, struct soft_qp *peer,
				    const struct request *r, uint64_t *answer)
{
	const struct sender from = { qp->nic->number, qp->qpn, qp->dc.session };
	enum outcome result = UNANSWERED;
	uint64_t *expected, *last;

	soft_lock(&peer->rx.lock);
	expected = can_accept(peer, qp) ? find_expected(peer, &from, &last) : NULL;
	if (!expected || qp->psn > *expected) {
		soft_count(&peer->nic->count.dropped);
	} else if (qp->psn < *expected) {
		soft_count(&peer->nic->count.repeated);
		result = LANDED;
		*answer = *last;
		if (r->op == HA_GPU_OP_READ)
			result = execute_request(peer, r, answer);
	} else {
		result = execute_request(peer, r, answer);
		if (result == LANDED) {
			++*expected;
			*last = *answer;
		} else if (result == NO_ACCESS && peer->kind == SOFT_RC) {
			peer->rx.accepts = false;
			ha_gpu_store(&peer->broken, 1);
		}
	}
	soft_unlock(&peer->rx.lock);
	return result;
}

static enum outcome send_request(struct soft_qp *qp, const struct request *r)
{
	struct soft_qp *peer = peer_of(qp);
	uint64_t answer = 0;
	enum outcome result;
	bool here = r->op != HA_GPU_OP_NOP && !r->in_entry && r->bytes;

	if (r->op == HA_GPU_OP_NOP)
		return LANDED;
	if (here && !soft_mr_find(qp->nic, r->lkey, r->local, r->bytes, false))
		return BAD_LOCAL;
	if (!peer || !is_reachable(qp->nic, peer->nic))
		return UNANSWERED;
	result = deliver_request(qp, peer, r, &answer);
	if (result == LANDED && r->op == HA_GPU_OP_FETCH_ADD)
		ha_gpu_store((uint64_t *)(uintptr_t)r->local, answer);
	return result;
}

/* ---- held requests ---- */

static void hold_request(struct soft_qp *qp, const struct request *r, uint64_t due)
{
	struct soft_fabric *f = qp->nic->fabric;
	struct soft_qp *peer = peer_of(qp);
	struct soft_held *h = NULL;
	uint64_t incarnation;

	if (!peer || r->bytes > SOFT_HELD_BYTES ||
	    (r->op != HA_GPU_OP_WRITE && r->op != HA_GPU_OP_FETCH_ADD))
		return;
	soft_lock(&peer->rx.lock);
	incarnation = peer->rx.incarnation;
	soft_unlock(&peer->rx.lock);
	soft_lock(&f->held_lock);
	for (unsigned i = 0; i < SOFT_HELD_MAX && !h; i++)
		if (!f->held[i].used)
			h = &f->held[i];
	if (h) {
		h->nic = qp->peer_nic;
		h->qpn = qp->peer_qpn;
		h->incarnation = incarnation;
		h->psn = qp->psn;
		h->session = qp->dc.session;
		h->from_nic = qp->nic->number;
		h->from_qpn = qp->qpn;
		h->key = r->rkey;
		h->address = r->remote;
		h->bytes = r->op == HA_GPU_OP_FETCH_ADD ? 0 : r->bytes;
		if (r->op == HA_GPU_OP_FETCH_ADD)
			memcpy(h->data, &r->add, 8);
		else
			memcpy(h->data,
			       r->in_entry ? (const void *)r->data
					   : (const void *)(uintptr_t)r->local,
			       r->bytes);
		h->due_ns = due;
		h->used = true;
		ha_gpu_add(&f->nheld, 1);
	}
	soft_unlock(&f->held_lock);
}

static void land_held(struct soft_qp *qp, const struct soft_held *h)
{
	struct request r = { .op = h->bytes ? HA_GPU_OP_WRITE : HA_GPU_OP_FETCH_ADD,
			     .remote = h->address,
			     .rkey = h->key };
	const struct sender from = { h->from_nic, h->from_qpn, h->session };
	uint64_t answer = 0, *expected, *last;

	r.bytes = h->bytes ? h->bytes : 8;
	r.local = (uint64_t)(uintptr_t)h->data;
	memcpy(&r.add, h->data, 8);
	soft_lock(&qp->rx.lock);
	expected = qp->rx.accepts && qp->rx.incarnation == h->incarnation
			   ? find_expected(qp, &from, &last)
			   : NULL;
	if (expected && *expected == h->psn && execute_request(qp, &r, &answer) == LANDED) {
		++*expected;
		*last = answer;
		soft_count(&qp->nic->count.held_landed);
	} else {
		soft_count(&qp->nic->count.dropped);
	}
	soft_unlock(&qp->rx.lock);
}

bool soft_land_due(struct soft_nic *n)
{
	struct soft_fabric *f = n->fabric;
	struct soft_held *h = NULL;
	uint64_t now = ha_gpu_now();

	if (!ha_gpu_load(&f->nheld) || !ha_gpu_load(&n->link))
		return false;
	soft_lock(&f->held_lock);
	for (unsigned i = 0; i < SOFT_HELD_MAX; i++)
		if (f->held[i].used && f->held[i].nic == n->number && f->held[i].due_ns <= now &&
		    (!h || f->held[i].psn < h->psn))
			h = &f->held[i];
	if (h) {
		for (uint64_t i = 0; i < ha_gpu_load(&n->nqps); i++)
			if (n->qp[i].qpn == h->qpn)
				land_held(&n->qp[i], h);
		h->used = false;
		ha_gpu_add(&f->nheld, UINT64_MAX);
	}
	soft_unlock(&f->held_lock);
	return h != NULL;
}

/* ---- faults ---- */

static void finish_fault(struct soft_qp *qp, struct soft_fault *f)
{
	struct soft_nic *n = qp->nic, *who = n;

	f->armed = false;
	n->struck++;
	switch (f->then) {
	case SOFT_THEN_NOTHING:
		return;
	case SOFT_THEN_PEER_DIES:
		who = &n->fabric->nic[qp->peer_nic];
		/* fallthrough */
	case SOFT_THEN_DIE:
		ha_gpu_store(&who->power, SOFT_DEAD);
		break;
	case SOFT_THEN_SILENT:
		ha_gpu_store(&n->power, SOFT_SILENT);
		break;
	case SOFT_THEN_FLAP:
		ha_gpu_store(&n->link_back_ns, ha_gpu_now() + f->down_ns);
		/* fallthrough */
	case SOFT_THEN_CUT:
		ha_gpu_store(&n->link, 0);
		break;
	}
	ha_gpu_store(&who->reported, f->announced);
}

void soft_fault_step(struct soft_nic *n)
{
	struct soft_qp *qp = &n->qp[n->begun_qp];

	if (!n->fault.armed || !n->begun_ns || ha_gpu_now() - n->begun_ns < FAULT_NS)
		return;
	soft_lock(&qp->sq_lock);
	finish_fault(qp, &n->fault);
	soft_unlock(&qp->sq_lock);
}

/* ---- one entry ---- */

static bool complete_entry(struct soft_qp *qp, const struct ha_gpu_wqe *e, const struct request *r,
			   bool complete)
{
	if (complete && ha_gpu_wqe_flags(e) & HA_GPU_WQE_SIGNALED)
		soft_complete(qp, &qp->send, HA_GPU_CQE_REQ, 0, qp->ci, (uint32_t)r->bytes, 0);
	qp->ci += qp->blocks;
	if (r->op != HA_GPU_OP_NOP) {
		qp->psn++;
		qp->unacked = false;
	}
	qp->unanswered_since = 0;
	return true;
}

static bool fail_entry(struct soft_qp *qp, unsigned syndrome)
{
	soft_complete(qp, &qp->send, HA_GPU_CQE_REQ_ERR, syndrome, qp->ci, 0, 0);
	qp->ci += qp->blocks;
	qp->state = SOFT_ERR;
	soft_lock(&qp->rx.lock);
	qp->rx.accepts = false;
	soft_unlock(&qp->rx.lock);
	return true;
}

/* No answer: it is repeated for a while. */
static bool retry_entry(struct soft_qp *qp, uint64_t limit, unsigned syndrome)
{
	uint64_t now = ha_gpu_now();

	if (!qp->unanswered_since)
		qp->unanswered_since = now;
	if (now - qp->unanswered_since < limit)
		return false;
	return fail_entry(qp, syndrome);
}

static bool settle_entry(struct soft_qp *qp, const struct ha_gpu_wqe *e, const struct request *r,
			 enum outcome o, bool complete)
{
	switch (o) {
	case LANDED:
		return complete_entry(qp, e, r, complete);
	case UNANSWERED:
		return retry_entry(qp, qp->nic->retry_ns, HA_GPU_SYN_RETRIES);
	case NOT_READY:
		return retry_entry(qp, qp->nic->rnr_ns, HA_GPU_SYN_RNR);
	case NO_ACCESS:
		return fail_entry(qp, HA_GPU_SYN_REMOTE_ACCESS);
	case BAD_LOCAL:
		return fail_entry(qp, HA_GPU_SYN_LOCAL_PROTECTION);
	case BAD_ENTRY:
		break;
	}
	return fail_entry(qp, HA_GPU_SYN_LOCAL_QP);
}

/* The script's part. False: nothing is wrong with this entry. */
static bool apply_fault(struct soft_qp *qp, const struct ha_gpu_wqe *e, const struct request *r,
			bool *worked)
{
	struct soft_nic *n = qp->nic;
	struct soft_fault *f = &n->fault;
	bool complete = f->complete || f->act == SOFT_ACT_UNPLACED;
	enum outcome o = LANDED;

	if (!f->armed || n->entries < f->at)
		return false;
	*worked = true;
	/*
	 * What answers with data is executed, or it strikes before it: nothing that is ordered
	 * behind it may pass.
	 */
	if (n->entries - f->at >= f->n || (f->act != SOFT_ACT_EXECUTE && r->op == HA_GPU_OP_READ)) {
		finish_fault(qp, f);
		return true;
	}
	if (!n->begun_ns)
		n->begun_ns = ha_gpu_now();
	n->begun_qp = (uint32_t)(qp - n->qp);
	if (f->act == SOFT_ACT_EXECUTE)
		o = send_request(qp, r);
	else if (f->act == SOFT_ACT_HOLD)
		hold_request(qp, r, ha_gpu_now() + f->hold_ns);
	n->entries += o == LANDED;
	settle_entry(qp, e, r, o, complete);
	qp->unacked = o == LANDED && !complete &&
		      (f->act != SOFT_ACT_EXECUTE || f->then != SOFT_THEN_NOTHING);
	if (n->entries - f->at >= f->n)
		finish_fault(qp, f);
	return true;
}

bool soft_send_step(struct soft_qp *qp)
{
	struct ha_gpu_wqe e;
	struct request r = { .op = HA_GPU_OP_NOP };
	enum outcome o;
	bool worked;

	if (qp->kind == SOFT_DCT)
		return false;
	if (ha_gpu_load(&qp->broken))
		qp->state = SOFT_ERR;
	if (qp->state < SOFT_RTS)
		return false;
	soft_send_bell(qp);
	if (qp->ci == qp->pi)
		return false;
	memcpy(&e, qp->wqe + (qp->ci & (qp->nwqes - 1)) * HA_GPU_WQE_BYTES, sizeof(e));
	qp->blocks = 1;
	o = qp->kind == SOFT_DCI ? take_target(qp, &e) : LANDED;
	qp->blocks = qp->blocks ? qp->blocks : 1;
	if (qp->state == SOFT_ERR) {
		soft_complete(qp, &qp->send, HA_GPU_CQE_REQ_ERR, HA_GPU_SYN_FLUSH, qp->ci, 0, 0);
		qp->ci += qp->blocks;
		return true;
	}
	if (o == LANDED)
		o = parse_entry(qp, &e, &r);
	if (o == LANDED && apply_fault(qp, &e, &r, &worked))
		return worked;
	if (o == LANDED)
		o = r.op == HA_GPU_OP_NOP && qp->unacked ? UNANSWERED : send_request(qp, &r);
	qp->nic->entries += o == LANDED;
	return settle_entry(qp, &e, &r, o, true);
}
