/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder of a test's own under /tmp, and its end with whatever lies in it. */
#ifndef HA_TESTS_BASE_FOLDER_H
#define HA_TESTS_BASE_FOLDER_H

#include <ftw.h>
#include <stdio.h>

enum { FOLDER_DEEP = 16 }; /* descriptors that nftw may hold at once */

static inline int folder_remove_entry(const char *path, const struct stat *st, int type,
				      struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

/* Links are removed, not followed. 0, or -1 with errno. */
static inline int folder_remove(const char *path)
{
	return nftw(path, folder_remove_entry, FOLDER_DEEP, FTW_DEPTH | FTW_PHYS);
}

#endif
