/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MODE 0644

static int map_page(struct ha_page *p, const struct ha_folder *folder)
{
	int fd = openat(folder->fd, p->name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	void *at = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)) && st.st_size == (off_t)sizeof(*p->shm))
		at = mmap(NULL, sizeof(*p->shm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		return -EINVAL;
	p->shm = at;
	p->inode = st.st_ino;
	return 0;
}

static bool holds_hints(const struct mpib_hint_shm *shm)
{
	return shm->header.magic == MPIB_HINT_MAGIC &&
	       shm->header.max_entries == MPIB_HINT_MAX_ENTRIES;
}

static int create_page(struct ha_page *p, const struct ha_folder *folder,
		       const struct mpib_hint_shm *content)
{
	int err = ha_folder_write(folder, p->name, MODE, content, sizeof(*content));

	return err ? err : map_page(p, folder);
}

int ha_page_open(struct ha_page *p, const struct ha_folder *folder, const char *name)
{
	const struct mpib_hint_shm empty = { .header = { MPIB_HINT_MAGIC, MPIB_HINT_MAX_ENTRIES, 1,
							 0 } };

	memset(p, 0, sizeof(*p));
	if (snprintf(p->name, sizeof(p->name), "%s", name) >= (int)sizeof(p->name))
		return -ENAMETOOLONG;
	if (!map_page(p, folder)) {
		p->inherited = holds_hints(p->shm);
		if (p->inherited)
			return 0;
		ha_page_close(p);
	}
	return create_page(p, folder, &empty);
}

int ha_page_again(struct ha_page *p, const struct ha_folder *folder)
{
	struct mpib_hint_shm *old = p->shm;
	int err = create_page(p, folder, old);

	if (!err)
		munmap(old, sizeof(*old));
	return err;
}

void ha_page_close(struct ha_page *p)
{
	if (p->shm)
		munmap(p->shm, sizeof(*p->shm));
	p->shm = NULL;
}
