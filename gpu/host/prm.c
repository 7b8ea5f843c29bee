/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/host/prm.h"

#include <string.h>

enum {
	CREATE_CQ = 0x400,
	CREATE_QP = 0x500,
	RST2INIT_QP = 0x502,
	INIT2RTR_QP = 0x503,
	RTR2RTS_QP = 0x504,
	TO_ERR_QP = 0x507,
	TO_RST_QP = 0x50a,
	CREATE_DCT = 0x710
};

/* Where contexts begin, in bits. */
enum { CQC = 0x80, QPC = 0xc0, PATH = QPC + 0xc0, DCTC = 0x80 };

#define PM_MIGRATED 3
#define RQ_NONE 3
#define ATOMIC_IB 1
#define OUTSTANDING_LOG 4 /* reads and atomics under way at once: 16 */
#define RNR_TIMER 12      /* 0.64 ms */
#define RNR_ALWAYS 7
#define MESSAGE_LOG 30
#define HOPS 64

/* Most significant bit first, as the manual counts. */
static void put_bits(uint8_t *in, unsigned at, unsigned width, uint64_t value)
{
	for (unsigned i = 0; i < width; i++) {
		unsigned bit = at + width - 1 - i;
		uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		in[bit / 8] = (uint8_t)((in[bit / 8] & ~mask) | (value >> i & 1 ? mask : 0));
	}
}

static uint32_t get_bits(const uint8_t *out, unsigned at, unsigned width)
{
	uint32_t v = 0;

	for (unsigned bit = at; bit < at + width; bit++)
		v = v << 1 | (out[bit / 8] >> (7 - bit % 8) & 1);
	return v;
}

static void begin_command(uint8_t *in, unsigned opcode)
{
	memset(in, 0, HA_GPU_PRM_IN);
	put_bits(in, 0, 16, opcode);
}

size_t ha_gpu_prm_create_cq(uint8_t *in, const struct ha_gpu_prm_cq *cq)
{
	begin_command(in, CREATE_CQ);
	put_bits(in, CQC + 0x06, 1, 1);            /* dbr_umem_valid */
	put_bits(in, CQC + 0x0b, 1, cq->log == 0); /* cc: all completions in the first entry */
	put_bits(in, CQC + 0x0e, 1, cq->log == 0); /* oi: and nobody says how far it was read */
	put_bits(in, CQC + 0x20, 32, cq->dbr_umem);
	put_bits(in, CQC + 0x63, 5, cq->log);
	put_bits(in, CQC + 0x68, 24, cq->uar);
	put_bits(in, CQC + 0xb8, 8, cq->eqn);
	put_bits(in, CQC + 0x1c0, 64, cq->dbr_offset);
	put_bits(in, 0x280, 64, cq->offset);
	put_bits(in, 0x2c0, 32, cq->umem);
	put_bits(in, 0x2e0, 1, 1); /* cq_umem_valid */
	return 272;
}

size_t ha_gpu_prm_create_qp(uint8_t *in, const struct ha_gpu_prm_qp *qp)
{
	begin_command(in, CREATE_QP);
	put_bits(in, QPC + 0x08, 8, qp->dci ? 5 : 0); /* st: DCI, or reliable connection */
	put_bits(in, QPC + 0x13, 2, PM_MIGRATED);
	put_bits(in, QPC + 0x28, 24, qp->pd);
	put_bits(in, QPC + 0x51, 4, qp->log);
	put_bits(in, QPC + 0x68, 24, qp->uar);
	put_bits(in, QPC + 0x88, 24, qp->user_index);
	put_bits(in, QPC + 0x3e8, 24, qp->cqn);
	put_bits(in, QPC + 0x4e8, 24, qp->cqn);
	put_bits(in, QPC + 0x500, 64, qp->dbr_offset);
	put_bits(in, QPC + 0x565, 3, RQ_NONE);
	put_bits(in, QPC + 0x683, 1, 1); /* dbr_umem_valid */
	put_bits(in, QPC + 0x720, 32, qp->dbr_umem);
	put_bits(in, 0x800, 64, qp->offset);
	put_bits(in, 0x840, 32, qp->umem);
	put_bits(in, 0x860, 1, 1); /* wq_umem_valid */
	return 272;
}

static void begin_modify(uint8_t *in, unsigned opcode, uint32_t qpn)
{
	begin_command(in, opcode);
	put_bits(in, 0x48, 24, qpn);
}

size_t ha_gpu_prm_rst2init(uint8_t *in, uint32_t qpn, unsigned port)
{
	begin_modify(in, RST2INIT_QP, qpn);
	put_bits(in, QPC + 0x13, 2, PM_MIGRATED);
	put_bits(in, PATH + 0x10, 16, 0); /* pkey_index */
	put_bits(in, PATH + 0x128, 8, port);
	put_bits(in, QPC + 0x48c, 4, ATOMIC_IB);
	put_bits(in, QPC + 0x490, 3, 7); /* rre, rwe, rae */
	return 272;
}

size_t ha_gpu_prm_dci_rst2init(uint8_t *in, uint32_t qpn, unsigned port)
{
	begin_modify(in, RST2INIT_QP, qpn);
	put_bits(in, QPC + 0x13, 2, PM_MIGRATED);
	put_bits(in, PATH + 0x128, 8, port);
	return 272;
}

size_t ha_gpu_prm_create_dct(uint8_t *in, const struct ha_gpu_prm_dct *d)
{
	begin_command(in, CREATE_DCT);
	put_bits(in, DCTC + 0x48, 24, d->cqn);
	put_bits(in, DCTC + 0x68, 4, ATOMIC_IB);
	put_bits(in, DCTC + 0x6c, 3, 7); /* rre, rwe, rae */
	put_bits(in, DCTC + 0x93, 5, RNR_TIMER);
	put_bits(in, DCTC + 0xa8, 24, d->srqn);
	put_bits(in, DCTC + 0xc8, 24, d->pd);
	put_bits(in, DCTC + 0xe0, 8, d->traffic_class);
	put_bits(in, DCTC + 0x100, 64, d->key);
	put_bits(in, DCTC + 0x145, 3, d->mtu);
	put_bits(in, DCTC + 0x148, 8, d->port);
	put_bits(in, DCTC + 0x168, 8, d->gid_index);
	put_bits(in, DCTC + 0x178, 8, HOPS);
	if (d->ethernet) {
		put_bits(in, DCTC + 0x1b5, 3, d->service_level);
		put_bits(in, DCTC + 0x1ba, 6, d->traffic_class >> 2);
	}
	return 128;
}

static void put_path(uint8_t *in, const struct ha_gpu_prm_peer *p)
{
	put_bits(in, PATH + 0x128, 8, p->port);
	put_bits(in, PATH + 0x124, 4, p->ethernet ? 0 : p->service_level);
	if (!p->ethernet) {
		put_bits(in, PATH + 0x30, 16, p->lid);
		return;
	}
	put_bits(in, PATH + 0x48, 8, p->gid_index);
	put_bits(in, PATH + 0x58, 8, HOPS);
	put_bits(in, PATH + 0x64, 8, p->traffic_class);
	for (unsigned i = 0; i < 16; i++)
		put_bits(in, PATH + 0x80 + 8 * i, 8, p->gid[i]);
	put_bits(in, PATH + 0x10a, 6, p->traffic_class >> 2);
	put_bits(in, PATH + 0x110, 16, p->udp_port);
	put_bits(in, PATH + 0x121, 3, p->service_level);
	for (unsigned i = 0; i < 6; i++)
		put_bits(in, PATH + 0x130 + 8 * i, 8, p->mac[i]);
}

size_t ha_gpu_prm_init2rtr(uint8_t *in, uint32_t qpn, const struct ha_gpu_prm_peer *p)
{
	begin_modify(in, INIT2RTR_QP, qpn);
	put_bits(in, QPC + 0x40, 3, p->mtu);
	put_bits(in, QPC + 0x43, 5, MESSAGE_LOG);
	put_bits(in, QPC + 0xa8, 24, p->qpn);
	put_path(in, p);
	put_bits(in, QPC + 0x488, 3, OUTSTANDING_LOG);
	put_bits(in, QPC + 0x4a3, 5, RNR_TIMER);
	put_bits(in, QPC + 0x4a8, 24, p->psn);
	return 272;
}

size_t ha_gpu_prm_rtr2rts(uint8_t *in, uint32_t qpn, uint32_t psn, unsigned timeout,
			  unsigned retry_cnt)
{
	begin_modify(in, RTR2RTS_QP, qpn);
	put_bits(in, PATH + 0x40, 5, timeout);
	put_bits(in, QPC + 0x388, 3, OUTSTANDING_LOG);
	put_bits(in, QPC + 0x38d, 3, retry_cnt);
	put_bits(in, QPC + 0x390, 3, RNR_ALWAYS);
	put_bits(in, QPC + 0x3c8, 24, psn);
	return 272;
}

size_t ha_gpu_prm_to_error(uint8_t *in, uint32_t qpn)
{
	begin_modify(in, TO_ERR_QP, qpn);
	return 16;
}

size_t ha_gpu_prm_to_reset(uint8_t *in, uint32_t qpn)
{
	begin_modify(in, TO_RST_QP, qpn);
	return 16;
}

uint32_t ha_gpu_prm_number(const uint8_t *out)
{
	return get_bits(out, 0x48, 24);
}

uint8_t ha_gpu_prm_status(const uint8_t *out)
{
	return out[0];
}

uint32_t ha_gpu_prm_syndrome(const uint8_t *out)
{
	return get_bits(out, 0x20, 32);
}
