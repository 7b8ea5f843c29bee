/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.h - what hosts and switches say to a ha-controller; each call waits for its answer, no
 * longer than its deadline
 *
 * One thread at a time per client. Calls return 0 or a negative errno, and then
 * ha_ina_client_error() is one line for the operator: -ECONNREFUSED it cannot be reached,
 * -ETIMEDOUT it does not answer, -EACCES it does not let us,
 * -EINVAL it finds the request wrong, -EAGAIN it is too busy, -EPROTO anything else.
 * A process that forks must open its clients afterwards (gRPC has threads).
 */
#ifndef HA_INA_CLIENT_H
#define HA_INA_CLIENT_H

#include "ina/controller/groups.h"
#include "ina/controller/tls.h"

struct ha_ina_client;

struct ha_ina_client_options {
	const char *address; /* "host:port" or "unix:/path" */
	struct ha_tls tls;
	unsigned deadline_ms; /* of each call, 0 = 5000 */
	/*
	 * a controller that cannot be reached is tried again until the deadline: it may be
	 * restarting
	 */
	bool retry;
};

/* NULL and why. */
struct ha_ina_client *ha_ina_client_open(const struct ha_ina_client_options *options, char *why,
					 size_t size);
void ha_ina_client_close(struct ha_ina_client *client);
const char *ha_ina_client_error(const struct ha_ina_client *client);

struct ha_ina_lease {
	uint8_t id; /* 0: do without the switch, and `message` says why */
	uint32_t agg_addr, agg_len, epoch, lease_ms;
	uint32_t switch_address; /* host byte order */
	uint64_t key;
	char switch_name[HA_SWITCH_NAME];
	char message[192];
};

struct ha_ina_group_spec {
	const uint32_t *member; /* in the order of their ranks, host byte order */
	size_t members;
	uint32_t length, least; /* aggregators; 0 = the controller's default */
	uint32_t lease_ms;      /* 0 = we shall not renew */
	/*
	 * of each rank, a power of two: what the switch divides the range among; 0 = as the switch
	 * is set. With them ranks may have one address
	 */
	uint32_t workers;
	bool extended;    /* the kind of frame that the group uses */
	const char *name; /* for people, NULL = none */
};

/* After a failure the same request, asked again of the same client, is the same request: a group
 * whose answer was lost is the answer, if it still exists. Another request is another request. */
int ha_ina_client_create(struct ha_ina_client *client, const struct ha_ina_group_spec *spec,
			 struct ha_ina_lease *lease);

struct ha_ina_heartbeat {
	bool live;                 /* else stop sending; `message` says why */
	bool switch_away;          /* the switch is silent */
	uint32_t epoch;            /* changed: the switch has lost its memory */
	uint32_t lease_ms, silent; /* bit per rank that has sent once and is silent now */
	char message[192];
};

/* rank: ours, or -1. To be called three times as often as the lease is long. */
int ha_ina_client_renew(struct ha_ina_client *client, const struct ha_ina_lease *lease, int rank,
			struct ha_ina_heartbeat *heartbeat);
/* What a group is. */
struct ha_ina_group_info {
	uint8_t id, ranks, workers; /* workers 0: as the switch is set */
	bool extended;
	uint32_t base, len, epoch, lease_ms, switch_address;
	uint32_t member[HA_GROUP_MEMBERS_MAX];
};

/*
 * A rank begins: of the lease, number, key and switch are looked at. With beat->live *info is what
 * the group is. Each rank joins once: -EINVAL when another incarnation (not 0) has joined; asked
 * again with the same one it is the same.
 */
int ha_ina_client_join(struct ha_ina_client *client, const struct ha_ina_lease *lease,
		       unsigned rank, uint64_t incarnation, struct ha_ina_group_info *info,
		       struct ha_ina_heartbeat *heartbeat);
/* The rank is out of it. When all ranks are, the group ends. */
int ha_ina_client_leave(struct ha_ina_client *client, const struct ha_ina_lease *lease,
			unsigned rank, uint64_t incarnation, struct ha_ina_heartbeat *heartbeat);
/* message (192 bytes) is empty, or says that it was over already. */
int ha_ina_client_destroy(struct ha_ina_client *client, uint32_t id, const char *switch_name,
			  uint64_t key, char *message);

struct Inc__ListResponse;
/* Each page goes to `page`. */
int ha_ina_client_list(struct ha_ina_client *client,
		       void (*page)(void *user, const struct Inc__ListResponse *list), void *user);

struct Inc__SwitchHeartbeatRequest;
struct Inc__SwitchHeartbeatResponse;
/* For switches: *answer is to be freed with inc__switch_heartbeat_response__free_unpacked. The
 * deadline must be longer than the request's WaitMs. */
int ha_ina_client_switch(struct ha_ina_client *client,
			 const struct Inc__SwitchHeartbeatRequest *request,
			 struct Inc__SwitchHeartbeatResponse **answer);

#endif
