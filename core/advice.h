/* SPDX-License-Identifier: BSD-3-Clause */
/* advice.h - what a verbs status or event means, and what the operator can do about it */
#ifndef HA_CORE_ADVICE_H
#define HA_CORE_ADVICE_H

#include <infiniband/verbs.h>

/* Never NULL, also for values that no library of today returns. */
const char *ha_wc_status_name(enum ibv_wc_status status);
const char *ha_wc_status_advice(enum ibv_wc_status status);
const char *ha_event_name(enum ibv_event_type type);
/* "" where there is nothing to do. */
const char *ha_event_advice(enum ibv_event_type type);

#endif
