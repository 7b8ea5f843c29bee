/* SPDX-License-Identifier: BSD-3-Clause */
/* show.h - what `ha switches` shows and writes */
#ifndef HAWSER_TOOLS_SWITCHES_SHOW_H
#define HAWSER_TOOLS_SWITCHES_SHOW_H

#include "tools/switches/ports.h"

void switches_show_table(const struct switches_list *list, FILE *out);
/* 0; -EIO: `out` did not take it. */
int switches_show_json(const struct switches_list *list, FILE *out);

/*
 * The file that the jobs read, in the place of the one that is there, at once: readers find the old
 * one or the new one. Ports that were not asked are left out. 0, or a negative errno.
 */
int switches_write_file(const struct switches_list *list, const char *path);

#endif
