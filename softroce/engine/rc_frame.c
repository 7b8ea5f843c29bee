/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rc_frame.c - the headers of a packet of a queue pair, for both halves of a connection and for
 * datagrams
 */
#include "softroce/engine/rc.h"
#include "softroce/engine/service.h"
#include <string.h>

void *sr_rc_frame(const struct sr_qp *qp, struct sr_frame *frame, uint8_t opcode, uint32_t psn)
{
	struct sr_bth *bth = (struct sr_bth *)frame->hdr;

	bth->opcode = (uint8_t)SR_OP_OF(qp->service->opcode_class, opcode);
	bth->flags = SR_BTH_MIGREQ;
	bth->pkey = htobe16(SR_PKEY);
	bth->qpn = htobe32(qp->attr.dest_qp_num);
	bth->apsn = htobe32(psn);
	frame->path = &qp->path;
	frame->iov_n = 0;
	return bth + 1;
}

void *sr_rc_aeth(void *at, uint8_t syndrome, uint32_t msn)
{
	uint32_t aeth = htobe32((uint32_t)syndrome << 24 | (msn & 0xffffff));

	memcpy(at, &aeth, sizeof(aeth));
	return (char *)at + sizeof(aeth);
}

void sr_rc_finish(struct sr_frame *frame, const void *end, uint32_t payload_len)
{
	struct sr_bth *bth = (struct sr_bth *)frame->hdr;

	frame->hdr_len = (uint16_t)((const uint8_t *)end - frame->hdr);
	frame->payload_len = payload_len;
	frame->pad = (uint8_t)(-payload_len & 3);
	bth->flags |= (uint8_t)(frame->pad << SR_BTH_PAD_SHIFT);
}
