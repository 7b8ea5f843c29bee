/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unreliable.h - what UC and UD share: a send is done when its last packet has left, and nobody
 * answers
 */
#ifndef SOFTROCE_ENGINE_UNRELIABLE_H
#define SOFTROCE_ENGINE_UNRELIABLE_H

#include "softroce/engine/qp.h"

/* Builds the packet at qp->req.next_psn. 0, or -EFAULT when a local buffer may not be read. */
typedef int (*sr_unreliable_build)(struct sr_qp *qp, const struct sr_swqe *wqe,
				   struct sr_frame *frame);

unsigned sr_unreliable_transmit(struct sr_qp *qp, unsigned burst, sr_unreliable_build build);
bool sr_unreliable_pending(const struct sr_qp *qp);
void sr_unreliable_expired(struct sr_qp *qp);
void sr_unreliable_drain(struct sr_qp *qp);
void sr_unreliable_silence(struct sr_qp *qp);
void sr_unreliable_reset(struct sr_qp *qp);
/*
 * The receive that was taken cannot hold the message, or may not be written to: it completes with
 * the reason.
 */
void sr_unreliable_receive_failed(struct sr_qp *qp, enum ibv_wc_status status);

#endif
