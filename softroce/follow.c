/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.c - what moves a NIC: packets and timers, its interface, its control page */
#include "softroce/adapter.h"
#include "softroce/settings.h"
#include "softroce/udp.h"

#include <string.h>

#define TURN_BUDGET 256 /* packets sent before the next look at what has arrived */

static int take_packets(struct sr_adapter *adapter, uint64_t now)
{
	int work = sr_udp_receive(adapter->udp, adapter->nic, now);

	adapter->deferred = 0;
	return work + sr_udp_run(adapter->udp, adapter->nic, now);
}

int sr_adapter_turn(struct sr_adapter *adapter, uint64_t now)
{
	int work = take_packets(adapter, now);

	return work + sr_nic_progress(adapter->nic, now, TURN_BUDGET);
}

/* ---- acknowledgements that wait ---- */

/*
 * A program that polls gets what has come first; the acknowledgement of it goes with what the
 * program sends then, or when it polls again. When it does neither, the worker sends it, who looks
 * in soon. A program that has let the worker do so is likely to do it again: the acknowledgements
 * go at once for a while, twice as long each time.
 */
#define WAIT_NS 100000
#define PROMPT_MIN 16
#define PROMPT_MAX 64

void sr_adapter_acks_overdue(struct sr_adapter *adapter)
{
	adapter->acks.prompt = adapter->acks.next < PROMPT_MIN ? PROMPT_MIN : adapter->acks.next;
	adapter->acks.next =
		adapter->acks.prompt < PROMPT_MAX / 2 ? adapter->acks.prompt * 2 : PROMPT_MAX;
}

static bool let_acks_wait(struct sr_adapter *adapter, uint64_t now)
{
	uint64_t until = now + WAIT_NS;

	if (adapter->acks.prompt) {
		adapter->acks.prompt--;
		return false;
	}
	/* A worker that sleeps until a packet comes would have to be woken. */
	if (adapter->wake_at > now + SR_AWAY_NS)
		return false;
	if (until < adapter->wake_at)
		until = adapter->wake_at;
	if (!sr_nic_let_acks_wait(adapter->nic, now, until))
		return false;
	adapter->acks.next -= adapter->acks.next > 0;
	return true;
}

int sr_adapter_turn_polled(struct sr_adapter *adapter, uint64_t now)
{
	int work = take_packets(adapter, now);

	/* Nothing came: what is owed has waited, or the wire has refused it. But who has just sent
	 * something may be about to send more. */
	if (work ? let_acks_wait(adapter, now) : sr_nic_acks_left(adapter->nic, now))
		return work;
	return work + sr_nic_progress(adapter->nic, now, TURN_BUDGET);
}

/* As a port that negotiates its link again: down, and up with the result. */
static void speed_take(struct sr_adapter *adapter, uint32_t speed)
{
	if (speed == adapter->speed_reported)
		return;
	adapter->speed_reported = speed;
	if (!adapter->link_reported)
		return;
	sr_nic_set_link(adapter->nic, false);
	sr_nic_set_link(adapter->nic, true);
}

static void report_link(struct sr_adapter *adapter)
{
	bool up = adapter->link.up && !adapter->faults.cut;

	if (up == adapter->link_reported)
		return;
	adapter->link_reported = up;
	sr_nic_set_link(adapter->nic, up);
}

void sr_adapter_follow_link(struct sr_adapter *adapter)
{
	struct sr_netif link;

	/* An interface that is gone, or has lost the address, is a port without a carrier. */
	if (adapter->dead)
		return;
	if (sr_netif_read(&link, &adapter->spec, adapter->taken))
		link.up = false;
	for (int i = 0; adapter->spec.kind == SR_DEVICE_INTERFACE && i < SR_NETIF_GIDS; i++) {
		union ibv_gid gid;

		if (!memcmp(link.gid[i], adapter->link.gid[i], 16))
			continue;
		if (sr_udp_bind(adapter->udp, i, link.gid[i], link.ifindex))
			memset(link.gid[i], 0, 16); /* tried again at the next change */
		memcpy(gid.raw, link.gid[i], 16);
		sr_nic_set_gid(adapter->nic, i, &gid);
	}
	adapter->link = link;
	report_link(adapter);
}

static void status_publish(struct sr_adapter *adapter)
{
	struct sr_control_page page = {
		.link_up = adapter->link_reported,
		.dead = adapter->dead,
		.counters = *sr_nic_counters(adapter->nic),
		.wire = *sr_udp_counters(adapter->udp),
	};

	memcpy(page.gid, adapter->link.gid, sizeof(page.gid));
	sr_control_publish(&adapter->control, &page);
}

void sr_adapter_follow_control(struct sr_adapter *adapter)
{
	if (adapter->control.bell < 0)
		return;
	if (sr_control_read(&adapter->control, &adapter->faults)) {
		sr_log_line("%s: the control page makes no sense; the faults in force stay",
			    adapter->spec.name);
		return;
	}
	if (adapter->faults.kill && !adapter->dead) {
		adapter->dead = true;
		sr_nic_kill(adapter->nic);
	}
	if (!adapter->dead) {
		if (adapter->faults.srq_errors != adapter->srq_errors)
			sr_nic_fail_srqs(adapter->nic);
		adapter->srq_errors = adapter->faults.srq_errors;
		speed_take(adapter, adapter->faults.speed);
		report_link(adapter);
	}
	status_publish(adapter);
}
