/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/mpib.h"

#include "base/log.h"
#include "plugin/bundle.h"
#include "plugin/ctx.h"
#include "plugin/device/device.h"
#include "rdma/topo/device.h"

#include <errno.h>
#include <string.h>

bool ha_mpib_wanted(const struct ha_config *config)
{
	return config->mpib_hca_sout[0] && config->mpib_hca_sup[0];
}

/* By "mlx5_0" (its first port that is there) or "mlx5_0:2"; -1: there is none. */
static int find_port(const struct ha_ctx *ctx, const char *name)
{
	for (int i = 0; i < ctx->ndevices; i++)
		if (!strcmp(ha_device_name(&ctx->devices[i]), name) ||
		    !strcmp(ctx->devices[i].topo->name, name))
			return i;
	HA_WARN(NULL,
		"MPIB: there is no active device %s among the %d that NCCL_IB_HCA lets through; "
		"`ha topo` lists them",
		name, ctx->ndevices);
	return -1;
}

static void count_rails(struct ha_mpib *m, const struct ha_config *config)
{
	m->sout_qp = config->mpib_sout_qp;
	m->sup_qp = config->mpib_sup_qp;
	while (m->sout_qp + m->sup_qp > HA_MAX_RAILS)
		*(m->sout_qp > m->sup_qp ? &m->sout_qp : &m->sup_qp) -= 1;
	if (m->sout_qp != config->mpib_sout_qp || m->sup_qp != config->mpib_sup_qp)
		HA_WARN(NULL,
			"MPIB: MPIB_SOUT_QP=%d and MPIB_SUP_QP=%d are more than %d together: %d "
			"and %d are used",
			config->mpib_sout_qp, config->mpib_sup_qp, HA_MAX_RAILS, m->sout_qp,
			m->sup_qp);
}

int ha_mpib_find(struct ha_ctx *ctx)
{
	const struct ha_config *config = &ctx->config;
	struct ha_mpib *m = &ctx->mpib;

	if (!ha_mpib_wanted(config)) {
		if (config->mpib_hca_sout[0] || config->mpib_hca_sup[0])
			HA_WARN(NULL, "MPIB: only one of MPIB_HCA_SOUT and MPIB_HCA_SUP is set; it "
				      "needs both, and has no effect");
		return 0;
	}
	m->sout = find_port(ctx, config->mpib_hca_sout);
	m->sup = find_port(ctx, config->mpib_hca_sup);
	return m->sout < 0 || m->sup < 0 ? -ENODEV : 1;
}

void ha_mpib_enable(struct ha_ctx *ctx)
{
	const struct ha_config *config = &ctx->config;
	struct ha_mpib *m = &ctx->mpib;

	count_rails(m, config);
	if (ctx->oob.ops->local)
		ctx->oob.ops->local(ctx->oob.net, &m->local);
	m->on = true;
	HA_INFO(NULL,
		"MPIB: SOUT %s with %d queue pairs, SUP %s with %d, MPIB_MODE=%d, islands of /%d",
		ha_device_name(&ctx->devices[m->sout]), m->sout_qp,
		ha_device_name(&ctx->devices[m->sup]), m->sup_qp, config->mpib_mode,
		config->mpib_island_prefix_len);
}

/* Two hosts of one island? */
static bool ha_mpib_island(const struct ha_wire_addr *a, const struct ha_wire_addr *b, int prefix)
{
	int bits = a->family == 4 ? 32 : 128, bytes;

	if (a->family != b->family)
		return false;
	bits = prefix < bits ? prefix : bits;
	bytes = bits / 8;
	return !memcmp(a->ip, b->ip, (size_t)bytes) &&
	       (!(bits % 8) || (a->ip[bytes] ^ b->ip[bytes]) >> (8 - bits % 8) == 0);
}

void ha_mpib_rails(const struct ha_mpib *m, bool sup, int *dev, struct ha_comm_opts *opts)
{
	int n = sup ? m->sout_qp + m->sup_qp : m->sout_qp;

	*dev = m->sout;
	opts->nmore = n - 1;
	for (int i = 1; i < n; i++)
		opts->more[i - 1] = i < m->sout_qp ? m->sout : m->sup;
}

bool ha_mpib_across(const struct ha_ctx *ctx, const struct ha_wire_addr *peer)
{
	return !ha_mpib_island(&ctx->mpib.local, peer, ctx->config.mpib_island_prefix_len);
}

bool ha_mpib_uses_sup(const struct ha_ctx *ctx, const struct ha_wire_addr *peer)
{
	return ctx->config.mpib_mode || !ha_mpib_across(ctx, peer);
}

void ha_mpib_parts(const struct ha_bundle *b, uint32_t part[2])
{
	bool sup = !b->ctx->config.mpib_mode && b->balance.ndata > b->ctx->mpib.sout_qp;

	part[0] = !sup;
	part[1] = sup;
}
