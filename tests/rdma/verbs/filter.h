/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * filter.h - a table of verbs around another one that makes things go wrong on purpose
 *
 * For tests: rare errors of real NICs, at a chosen call. Filters may be stacked, at most
 * HA_FILTER_DEPTH_MAX around one table. Everything that no rule names passes through. Any thread; a
 * lock per call, so not for measurements.
 */
#ifndef HA_VERBS_FILTER_H
#define HA_VERBS_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "rdma/verbs/ops.h"

#define HA_FILTER_DEPTH_MAX 4
#define HA_FILTER_RULES_MAX 32

/* What can be told to fail: HA_FILTER_create_qp and so on, and the hot functions. */
enum ha_filter_call {
#define X(function, params, args) HA_FILTER_##function,
#include "rdma/verbs/ops_list.h"
#undef X
	HA_FILTER_post_send,
	HA_FILTER_post_recv,
	HA_FILTER_post_srq_recv,
	HA_FILTER_poll_cq,
	HA_FILTER_req_notify_cq,
	HA_FILTER_CALLS
};

#define HA_FILTER_FOREVER UINT64_MAX

struct ha_verbs_filter;

/* Around `inner`, which must outlive the filter. -ENOMEM. */
int ha_verbs_filter_create(const struct ha_verbs_ops *inner, struct ha_verbs_filter **filter);
/* Contexts whose hot functions came through the filter must no longer be in use. */
void ha_verbs_filter_destroy(struct ha_verbs_filter *filter);
const struct ha_verbs_ops *ha_verbs_filter_ops(struct ha_verbs_filter *filter);

/*
 * Calls number `first` (1 = the next one from now) to first + count - 1 of `call` fail with `error`
 * (a negative errno) and do not reach the inner table. Hot functions return it in their own
 * convention: post_* the positive number, bad_wr the first request; poll_cq a negative one.
 * -ENOSPC: too many rules.
 */
int ha_verbs_filter_fail(struct ha_verbs_filter *filter, enum ha_filter_call call, uint64_t first,
			 uint64_t count, int error);

/* Completions number `first` (1 = the next) to first + count - 1 come out with `status` instead of
 * their own. */
int ha_verbs_filter_completion_error(struct ha_verbs_filter *filter, uint64_t first, uint64_t count,
				     enum ibv_wc_status status);
/* They never come out. */
int ha_verbs_filter_completion_drop(struct ha_verbs_filter *filter, uint64_t first, uint64_t count);
/* They come out `polls` polls of their queue later, behind what came meanwhile. */
int ha_verbs_filter_completion_delay(struct ha_verbs_filter *filter, uint64_t first, uint64_t count,
				     unsigned polls);

/* Forget every rule; completions that are held come out at the next poll. */
void ha_verbs_filter_clear(struct ha_verbs_filter *filter);
/* Calls of `call` so far, failed ones included; completions that came from below so far. */
uint64_t ha_verbs_filter_calls(struct ha_verbs_filter *filter, enum ha_filter_call call);
uint64_t ha_verbs_filter_completions(struct ha_verbs_filter *filter);

#endif
