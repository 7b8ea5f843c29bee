/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * returns.h - devices that fail, and come back
 *
 * A NIC whose firmware is reset, or that is taken off the PCI bus and found again, raises
 * IBV_EVENT_DEVICE_FATAL: what was opened on it is dead for good. Some time later the library lists
 * it anew, under the same name or another. So a device that has failed is
 *
 * - left: new rails and registrations find no opening of it; what the connections have on it is
 *   given back as each rail ends, and the last one closes the context (a driver may wait for that
 *   before the device can go);
 * - looked for, by a thread of its own, more and more rarely (rdma/topo/look.h);
 * - opened anew, and the rails that wait for it, or could use it as a standby, are notified.
 *
 * For NCCL nothing changes: the device has its number, its name and its properties all the time.
 *
 * A device may also be taken away without an event, while its port is down; so one that stays down
 * and is not listed any more has failed, too. All of it under ctx->drive.
 */
#ifndef HA_PLUGIN_RETURNS_H
#define HA_PLUGIN_RETURNS_H

#include <stdint.h>
#include <sys/queue.h>

struct ha_away;
struct ha_ctx;
struct ha_nic;
struct ha_opening;
struct ha_search;

struct ha_returns {
	/* open contexts, those of failed devices that are in use still among them */
	TAILQ_HEAD(, ha_nic) nics;
	LIST_HEAD(, ha_away) away;    /* devices that have failed and are not back */
	LIST_HEAD(, ha_opening) past; /* openings of failed devices that are in use still */
	struct ha_search *search;     /* is under way; NULL: none is */
	uint64_t check_at; /* when devices that are down are looked for in the list; UINT64_MAX:
			      none is */
	unsigned checks;   /* without success */
	int (*watch)(struct ha_nic *nic); /* receive its events */
};

/* The contexts that discovery has opened, and an opening for each port. watch: receives the
 * events of one that is opened later. 0 or -ENOMEM. */
int ha_returns_open(struct ha_ctx *ctx, int (*watch)(struct ha_nic *nic));
/* Nobody uses anything of a failed device any more. */
void ha_returns_close(struct ha_ctx *ctx);

/* Its device has failed; the connections have been notified. */
void ha_returns_lost(struct ha_nic *nic);
/* One of the ports went down. */
void ha_returns_port_down(struct ha_ctx *ctx);
/* Part of a round. When it is next due, UINT64_MAX: not before something happens. */
uint64_t ha_returns_round(struct ha_ctx *ctx, uint64_t now);

#endif
