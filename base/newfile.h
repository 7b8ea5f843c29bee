/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * newfile.h - a file that takes the place of another one at once: who reads finds the old one or
 * the new one, whole
 */
#ifndef HA_BASE_NEWFILE_H
#define HA_BASE_NEWFILE_H

#include <limits.h>
#include <stdio.h>

struct ha_new_file {
	FILE *out; /* to be written to */
	const char *path;
	char fresh[PATH_MAX]; /* its name until then, beside the old one */
};

/* path: as long as the file is open. 0, or a negative errno. */
int ha_new_file_open(struct ha_new_file *file, const char *path);
/* It takes the old one's place. A negative errno: it could not be written whole, and is gone; the
 * old one is as it was. */
int ha_new_file_close(struct ha_new_file *file);

#endif
