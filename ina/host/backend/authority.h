/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * authority.h - who gives groups, and says whether they still exist: a table
 *
 *   authority_controller.c  a ha-controller
 *   authority_local.c       nobody: with packet loopback a rank is alone
 *
 * Calls come from one thread (registrar.h) and may wait for some seconds. All give 0, or a negative
 * errno and one line in why[size].
 */
#ifndef INA_BACKEND_AUTHORITY_H
#define INA_BACKEND_AUTHORITY_H

#include "ina/host/backend/member.h"
#include "ina/host/shm/message.h"

struct ha_authority;
struct ha_net;

struct ha_authority_ops {
	/*
	 * A new group: all but switch_mac. -EAGAIN: there is none to be had, do without the switch.
	 */
	int (*create)(struct ha_authority *a, const struct ina_shm_create *spec,
		      struct ha_group_facts *group, char *why, size_t size);
	/*
	 * From now on this incarnation is the rank's, and no other ever will be: a rank that starts
	 * again must not meet what it has sent before (docs/ina.md,
	 * "Incarnations"). `group` has what the ticket says, and gets what is true. -EEXIST: the
	 * rank has joined before.
	 */
	int (*join)(struct ha_authority *a, struct ha_group_facts *group, unsigned rank,
		    uint64_t incarnation, char *why, size_t size);
	/* -ECANCELED, -ETIMEDOUT: it is over, and why. Any other error: nobody knows, ask again. */
	int (*renew)(struct ha_authority *a, const struct ha_group_facts *group, unsigned rank,
		     uint64_t incarnation, char *why, size_t size);
	/* The rank is out of it. When it fails the authority finds that out by itself, later. */
	int (*leave)(struct ha_authority *a, const struct ha_group_facts *group, unsigned rank,
		     uint64_t incarnation);
	void (*close)(struct ha_authority *a);
};

struct ha_authority {
	const struct ha_authority_ops *ops;
};

/* What every group of this backend is made with. */
struct ha_group_defaults {
	unsigned workers;
	bool extended;
	uint32_t slots; /* 0 = the controller's default */
	uint32_t lease_ms;
};

/*
 * net: of packet loopback, which must know the groups; or any other, with the other loopback modes.
 * NULL: no memory.
 */
struct ha_authority *ha_authority_local_open(const struct ha_group_defaults *defaults,
					     struct ha_net *net);

#endif
