/* SPDX-License-Identifier: BSD-3-Clause */
/* output.c - what leaves the engine: packets to the wire, events to the owner of the NIC */
#include "softroce/engine/nic.h"

bool sr_nic_emit(struct sr_nic *nic, const struct sr_frame *frame)
{
	if (nic->link_up) {
		if (nic->config.wire_ops->send(nic->config.wire, frame)) {
			nic->wire_full = true;
			return false;
		}
	} else {
		nic->counters.dropped_link_down++;
	}
	nic->counters.sent_pkts++;
	nic->counters.sent_bytes += frame->payload_len;
	return true;
}

void sr_nic_async(struct sr_nic *nic, enum ibv_event_type type, void *object)
{
	if (!nic->dead)
		nic->events.async(nic->config.user, type, object);
}
