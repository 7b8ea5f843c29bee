/* SPDX-License-Identifier: BSD-3-Clause */
/* folder.h - the folder of the control pages, and of what stands for the devices' PCI functions */
#ifndef SOFTROCE_FOLDER_H
#define SOFTROCE_FOLDER_H

#include <stddef.h>

/* Its path: SOFTROCE_CONTROL, or /dev/shm/softroce-<uid>. Returns buf. */
const char *sr_folder_path(char *buf, size_t len);
/*
 * Make the default one when it is not there. A descriptor, or -errno: -EPERM where others may write
 * into it.
 */
int sr_folder_open(void);

#endif
