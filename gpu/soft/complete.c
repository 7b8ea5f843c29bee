/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * complete.c - completions in memory: CQE64 with owner bit, or the one entry of a collapsed queue
 */
#include "gpu/device/wqe.h"
#include "gpu/soft/send.h"

#include <string.h>

/*
 * A ring that its owner does not empty overruns: the queue pair is in error, and nothing more is
 * written.
 */
static bool is_overrun(const struct soft_cq *cq)
{
	return cq->log &&
	       cq->pi - ha_gpu_be32(__atomic_load_n(cq->dbrec, __ATOMIC_ACQUIRE)) >= 1u << cq->log;
}

void soft_complete(struct soft_qp *qp, struct soft_cq *cq, unsigned opcode, unsigned syndrome,
		   uint16_t counter, uint32_t bytes, uint32_t imm)
{
	uint8_t *cqe = cq->cqe + HA_GPU_CQE_BYTES * (cq->pi & ((1u << cq->log) - 1));
	unsigned owner = cq->log ? cq->pi >> cq->log & 1 : 0;
	uint64_t tail = (uint64_t)ha_gpu_be32(qp->qpn) | (uint64_t)(counter >> 8) << 32 |
			(uint64_t)(counter & 0xff) << 40 | (uint64_t)(opcode << 4 | owner) << 56;

	if (is_overrun(cq)) {
		ha_gpu_store(&qp->broken, 1);
		return;
	}
	if (opcode == HA_GPU_CQE_RESP_WRITE_IMM) {
		memcpy(cqe + HA_GPU_CQE_IMM, &imm, 4);
		bytes = ha_gpu_be32(bytes);
		memcpy(cqe + HA_GPU_CQE_LENGTH, &bytes, 4);
	}
	ha_gpu_store((uint64_t *)(cqe + HA_GPU_CQE_SYNDROME - 7), (uint64_t)syndrome << 56);
	ha_gpu_store((uint64_t *)(cqe + HA_GPU_CQE_QPN), tail);
	cq->pi++;
	if (syndrome == HA_GPU_SYN_FLUSH)
		soft_count(&qp->nic->count.flushes);
	else
		soft_count(syndrome ? &qp->nic->count.errors : &qp->nic->count.completions);
}
