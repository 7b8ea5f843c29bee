/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_PERF_ONESIDED_H
#define HAWSER_PERF_ONESIDED_H

#include "tools/job/launch.h"

/* What a rank does for `ha perf put`, putsignal, get and moe; an ha_rank_body. */
enum ha_exit ha_onesided_rank(const void *context, const struct ha_place *place);

#endif
