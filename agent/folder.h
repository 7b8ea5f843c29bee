/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folder.h - a directory that is ours alone to write in, under a parent that everybody may write in
 * (/tmp)
 *
 * Everything is made by descriptor, under a temporary name, and renamed: no link that somebody else
 * laid is followed, and whoever opens a name finds the old thing or the new one, whole.
 */
#ifndef HA_AGENT_FOLDER_H
#define HA_AGENT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ha_folder {
	int fd; /* -1: not open */
	char path[256];
};

/*
 * The directory that holds `file`; made with mode 0755 if its last part is missing, which is not in
 * the root directory. *name points into `file`. -EPERM: it is another user's, or others may write
 * to it; else what the system says.
 */
int ha_folder_open(struct ha_folder *folder, const char *file, const char **name);
void ha_folder_close(struct ha_folder *folder);
/* The only one of us in it, until it is closed. -EBUSY. */
int ha_folder_lock(const struct ha_folder *folder);
/* A listening Unix stream socket of that name and mode, in place of what was there. Descriptor or
 * negative errno. */
int ha_folder_listen(const struct ha_folder *folder, const char *name, mode_t mode);
/* Replace the file by `size` bytes, which are on the disk before it. 0 or negative errno. */
int ha_folder_write(const struct ha_folder *folder, const char *name, mode_t mode, const void *data,
		    size_t size);
/* Another name, in place of what had it. 0 or negative errno. */
int ha_folder_rename(const struct ha_folder *folder, const char *from, const char *to);
/* "name" is still the file with this inode, in the directory that has this path now. */
bool ha_folder_holds(const struct ha_folder *folder, const char *name, ino_t inode);
/* Inode behind the name in the directory; 0: there is none. */
ino_t ha_folder_inode(const struct ha_folder *folder, const char *name);

#endif
