/* SPDX-License-Identifier: BSD-3-Clause */
/* balance.h - what a connection knows of who carries what */
#ifndef HA_BALANCE_BALANCE_H
#define HA_BALANCE_BALANCE_H

#include "plugin/balance/adaptive.h"
#include "plugin/balance/advice.h"
#include "plugin/balance/gate.h"
#include "plugin/balance/lag.h"
#include "plugin/core.h"

struct ha_balance {
	/* Each message reads these; policy.c keeps them. */
	/* messages below this many bytes need no second look: one rail; UINT64_MAX: all */
	uint64_t stripe_min;
	uint64_t floor; /* messages below it stay on one device: the gate, or the same UINT64_MAX */
	/* parts per 1024; 0: not for data as long as another has some */
	uint16_t weight[HA_MAX_RAILS];
	/* rails on one device take turns, message by message: the first of them */
	uint8_t lead[HA_MAX_RAILS];
	uint8_t beside[HA_MAX_RAILS]; /* and all of them, a mask */
	uint8_t carriers;             /* mask of the active rails that have a weight */
	uint16_t carried;             /* the sum of the weights of `carriers` */
	uint8_t first; /* the rail for what stays on one: the heaviest of the active */
	bool turns;    /* there are rails that take turns */
	bool moves;    /* the shares of its data rails change while it runs */
	/* Set-up, and where shares are decided. */
	uint8_t ndata; /* rails that the connection was opened with; spares are behind */
	/* of a port of its data rails: shares are to be computed again. Under ctx->drive */
	bool speed_changed;
	uint16_t share[HA_MAX_RAILS]; /* weight when all is well; 0: a standby */
	struct ha_advised advised;
	struct ha_adaptive adaptive;
	struct ha_gate gate;
	struct ha_lag lag;
};

#endif
