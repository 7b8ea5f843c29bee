/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/shm/listen.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int ina_shm_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

static bool is_dead(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return dead;
}

int ina_shm_listen(const char *path, unsigned mode, char *why, size_t size)
{
	struct sockaddr_un address;
	const char *step = "the path is too long";
	int err = ina_shm_address(path, &address), fd = -1;

	if (err)
		goto failed;
	step = "socket";
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		goto by_errno;
	step = "bind";
	if (bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (errno != EADDRINUSE)
			goto by_errno;
		step = "another backend, or something else, is there";
		err = -EADDRINUSE;
		if (!is_dead(&address))
			goto failed;
		unlink(path);
		step = "bind";
		if (bind(fd, (struct sockaddr *)&address, sizeof(address)))
			goto by_errno;
	}
	step = "chmod"; /* before listen(): until then nobody can attach */
	if (chmod(path, mode))
		goto by_errno;
	step = "listen";
	if (listen(fd, 64))
		goto by_errno;
	return fd;
by_errno:
	err = -errno;
failed:
	snprintf(why, size, "%s: no socket for clients (%s: %s)", path, step, strerror(-err));
	if (fd >= 0)
		close(fd);
	return err;
}
