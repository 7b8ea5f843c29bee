/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/under_nccl/communicators/nics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "softroce/control.h"

static void set_cut(struct sr_faults *faults, void *arg)
{
	faults->cut = *(const uint32_t *)arg;
}

/* How many NICs it was done to: none where the process has closed it. */
static int change_nic(pid_t pid, int nic, uint32_t cut)
{
	struct sr_control_entry *entry;
	char selector[64];
	int n, err;

	snprintf(selector, sizeof(selector), "soft%d:%d", nic, (int)pid);
	do {
		entry = sr_control_list(selector, &n);
		if (!n)
			return 0;
		CHECK_INT(n, 1);
		err = sr_control_change(entry, set_cut, &cut);
		free(entry);
	} while (err == -EBUSY); /* a busy machine */
	if (err == -ESRCH)
		return 0;
	CHECK_INT(err, 0);
	return 1;
}

void nic_cut(pid_t pid, int nic)
{
	CHECK_INT(change_nic(pid, nic, 1), 1);
}

void nic_heal(pid_t pid, int nic)
{
	(void)change_nic(pid, nic, 0); /* one that was closed is opened again with its cable in */
}
