/* SPDX-License-Identifier: BSD-3-Clause */
/* kill_nic.h - this process's soft0 fails, as with `ha kill soft0:PID`; links softroce_front */
#ifndef HA_TESTS_CORE_KILL_NIC_H
#define HA_TESTS_CORE_KILL_NIC_H

#include "base/check.h"
#include "softroce/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void set_killed(struct sr_faults *faults, void *arg)
{
	(void)arg;
	faults->kill = 1;
}

static inline void kill_first_nic(void)
{
	struct sr_control_entry *entry;
	char selector[64];
	int n;

	snprintf(selector, sizeof(selector), "soft0:%d", (int)getpid());
	entry = sr_control_list(selector, &n);
	CHECK_INT(n, 1);
	CHECK_INT(sr_control_change(entry, set_killed, NULL), 0);
	free(entry);
}

#endif
