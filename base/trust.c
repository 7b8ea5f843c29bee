/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/trust.h"

#include <stddef.h>
#include <unistd.h>

const char *ha_trust_fault(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "it is no file";
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "it is another user's";
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return "others may write to it";
	return NULL;
}
