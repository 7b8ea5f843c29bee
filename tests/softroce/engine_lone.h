/* SPDX-License-Identifier: BSD-3-Clause */
/* engine_lone.h - a queue pair of an unreliable service on each of two NICs */
#ifndef TESTS_SOFTROCE_ENGINE_LONE_H
#define TESTS_SOFTROCE_ENGINE_LONE_H

#include "tests/softroce/engine_pair.h"

#define LONE_QKEY 0x11111111u

/* Replaces both ends' queue pairs by ones of this type, in RTS. */
void lone_open(struct pair *p, const struct options *opt, enum ibv_qp_type type);
/* An address handle to the other end. */
struct sr_ah lone_ah(const struct pair *p, int from);

#endif
