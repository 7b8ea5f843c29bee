/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - transport services as a table: what differs between reliable connection and its
 * sisters
 */
#ifndef SOFTROCE_ENGINE_SERVICE_H
#define SOFTROCE_ENGINE_SERVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct sr_packet;
struct sr_path;
struct sr_qp;
struct sr_swqe;

struct sr_service {
	enum ibv_qp_type type;
	uint8_t opcode_class; /* upper three bits of the BTH opcode (IBTA vol. 1, 9.2.1) */
	bool anyone;          /* packets come from anywhere, not from one peer only */
	/* a failed send stops the send queue only (SQE), not the queue pair */
	bool survives;
	/*
	 * Checks one work request and fills in what depends on the service. Negative errno refuses
	 * it.
	 */
	int (*post)(struct sr_qp *qp, const struct ibv_send_wr *wr, struct sr_swqe *wqe);
	/*
	 * One packet of this class for this queue pair; the header is parsed and the peer's address
	 * checked.
	 */
	void (*receive)(struct sr_qp *qp, const struct sr_packet *packet);
	/*
	 * Sends at most `burst` packets. How many; fewer when there are no more or the wire is
	 * full.
	 */
	unsigned (*transmit)(struct sr_qp *qp, unsigned burst);
	/* Whether transmit() would send something now. */
	bool (*pending)(const struct sr_qp *qp);
	/* The queue pair's timer has expired. */
	void (*expired)(struct sr_qp *qp);
	/*
	 * The queue pair begins to drain: what was sent must be acknowledged although nothing
	 * follows it.
	 */
	void (*drain)(struct sr_qp *qp);
	/* Drops every answer owed to the peer. */
	void (*silence)(struct sr_qp *qp);
	/* Clears the service's state for a new incarnation. */
	void (*reset)(struct sr_qp *qp);
};

extern const struct sr_service sr_service_rc, sr_service_uc, sr_service_ud;

#endif
