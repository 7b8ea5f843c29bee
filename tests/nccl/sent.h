/* SPDX-License-Identifier: BSD-3-Clause */
/* sent.h - what a software NIC of this process has sent, by its own counters */
#ifndef HA_TESTS_NCCL_SENT_H
#define HA_TESTS_NCCL_SENT_H

#include "tests/nccl/rig.h"

#include <stdlib.h>
#include <unistd.h>

#include "softroce/control.h"

/* Bytes on the wire. */
static inline uint64_t rig_sent_by(const char *device)
{
	char selector[64];
	struct sr_control_entry *list;
	uint64_t bytes;
	int n;

	snprintf(selector, sizeof(selector), "%s:%d", device, (int)getpid());
	list = sr_control_list(selector, &n);
	CHECK(list && n == 1, "%d devices are called %s", n, selector);
	CHECK(!sr_control_refresh(list), "its counters are not there");
	bytes = list->page.counters.sent_bytes;
	free(list);
	return bytes;
}

#endif
