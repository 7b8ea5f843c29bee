/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_COLLNET_H
#define HAWSER_PERF_COLLNET_H

#include "tools/job/launch.h"

/* What a rank does for `ha perf collnet`; an ha_rank_body. */
enum ha_exit ha_collnet_rank(const void *context, const struct ha_place *place);

#endif
