/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <unistd.h>

int ha_new_file_open(struct ha_new_file *file, const char *path)
{
	int fd;

	file->path = path;
	if (snprintf(file->fresh, sizeof(file->fresh), "%s.%d", path, (int)getpid()) >=
	    (int)sizeof(file->fresh))
		return -ENAMETOOLONG;
	unlink(file->fresh); /* of a process that had this number and was killed */
	fd = open(file->fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return -errno;
	file->out = fdopen(fd, "w");
	if (file->out)
		return 0;
	close(fd);
	unlink(file->fresh);
	return -ENOMEM;
}

int ha_new_file_close(struct ha_new_file *file)
{
	bool lost = ferror(file->out), closed = !fclose(file->out);
	int err = lost ? -EIO : 0;

	if (!closed || (!lost && rename(file->fresh, file->path)))
		err = -errno;
	if (err)
		unlink(file->fresh);
	return err;
}
