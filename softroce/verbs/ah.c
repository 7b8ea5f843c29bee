/* SPDX-License-Identifier: BSD-3-Clause */
/* ah.c - address handles, and the address of whoever sent a datagram */
#include "softroce/verbs/objects.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

/* of an IPv4 header in the 40 bytes before a datagram (annex A17.4.5.1) */
#define IPV4_AT 20
#define IPV4_SOURCE 12 /* in it */
#define IPV4_DESTINATION 16

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct sr_context *context = sr_context_of(pd->context);
	struct sr_ah *ah = calloc(1, sizeof(*ah));
	int err = EIO;

	if (!ah)
		return sr_fail(ENOMEM);
	if (sr_context_enter(context)) {
		err = sr_ah_resolve(context->adapter->nic, attr, &ah->path);
		sr_context_leave(context);
	}
	if (err) {
		free(ah);
		return sr_fail(err);
	}
	ah->ah.context = pd->context;
	ah->ah.pd = pd;
	return &ah->ah;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	free(ah);
	return 0;
}

/* Our address in the header `grh`, and the sender's. */
static void read_addresses(const struct ibv_grh *grh, union ibv_gid *ours, union ibv_gid *theirs)
{
	const uint8_t *ip = (const uint8_t *)grh + IPV4_AT;

	if (ntohl(grh->version_tclass_flow) >> 28 == 6) {
		*ours = grh->dgid;
		*theirs = grh->sgid;
		return;
	}
	memset(ours, 0, sizeof(*ours));
	ours->raw[10] = ours->raw[11] = 0xff;
	*theirs = *ours;
	memcpy(ours->raw + 12, ip + IPV4_DESTINATION, 4);
	memcpy(theirs->raw + 12, ip + IPV4_SOURCE, 4);
}

int ibv_init_ah_from_wc(struct ibv_context *ibv, uint8_t port, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	struct sr_context *context = sr_context_of(ibv);
	union ibv_gid ours, theirs;
	int index = -1;

	if (!(wc->wc_flags & IBV_WC_GRH)) {
		errno = EINVAL; /* RoCE packets always have one */
		return -1;
	}
	read_addresses(grh, &ours, &theirs);
	if (sr_context_enter(context)) {
		for (int i = 0; i < SR_GIDS && index < 0; i++)
			if (!memcmp(context->adapter->link.gid[i], &ours, sizeof(ours)))
				index = i;
		sr_context_leave(context);
	}
	if (index < 0) {
		errno = ENOENT; /* the address it came to is not ours any more */
		return -1;
	}
	*attr = (struct ibv_ah_attr) {
		.is_global = 1,
		.port_num = port,
		.sl = wc->sl,
		.grh = { .dgid = theirs, .sgid_index = (uint8_t)index, .hop_limit = 64 },
	};
	return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port)
{
	struct ibv_ah_attr attr;

	return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) ? NULL
								      : ibv_create_ah(pd, &attr);
}
