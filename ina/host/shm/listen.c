/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int ina_shm_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un) { .sun_family = AF_UNIX };
	if (!*path || strlen(path) >= sizeof(address->sun_path))
		return -ENAMETOOLONG;
	strcpy(address->sun_path, path);
	return 0;
}

static bool is_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool dead = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		    errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return dead;
}

/* ---- the lock ---- */

struct lock_path {
	char text[sizeof(((struct sockaddr_un *)NULL)->sun_path) + sizeof(".lock")];
};

static struct lock_path lock_path(const char *path)
{
	struct lock_path p;

	snprintf(p.text, sizeof(p.text), "%s.lock", path);
	return p;
}

/* Is the file that is locked still the one that others find? Who ends removes it. */
static bool is_there(int lock, const char *path)
{
	struct stat ours, theirs;

	return !fstat(lock, &ours) && !lstat(path, &theirs) && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

/* The lock, -EADDRINUSE when another has it, or another errno. */
static int take_lock(const char *path)
{
	struct lock_path p = lock_path(path);
	int lock, err;

	for (;;) {
		lock = open(p.text, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (lock < 0)
			return -errno;
		if (flock(lock, LOCK_EX | LOCK_NB)) {
			err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
			close(lock);
			return err;
		}
		if (is_there(lock, p.text))
			return lock;
		close(lock);
	}
}

static void drop_lock(const char *path, int lock)
{
	struct lock_path p = lock_path(path);

	unlink(p.text); /* while it is held: nobody else's */
	close(lock);
}

/* ---- the socket ---- */

/* With the lock. 0, or a negative errno and *step. */
static int bind_it(int fd, const struct sockaddr_un *address, const char **step)
{
	*step = "bind";
	if (!bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	if (!is_stale(address)) {
		*step = "another backend, or something else, is there";
		return -EADDRINUSE;
	}
	unlink(address->sun_path);
	return bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
}

static int open_it(const struct sockaddr_un *address, unsigned mode, int *fd, const char **step)
{
	int err;

	*step = "socket";
	*fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*fd < 0)
		return -errno;
	err = bind_it(*fd, address, step);
	if (err)
		return err;
	*step = "chmod"; /* before listen(): until then nobody can attach */
	if (chmod(address->sun_path, mode))
		return -errno;
	*step = "listen";
	return listen(*fd, 64) ? -errno : 0;
}

int ina_shm_listen(const char *path, unsigned mode, struct ina_shm_place *place, char *why,
		   size_t size)
{
	struct sockaddr_un address;
	const char *step = "the path is too long";
	int err = ina_shm_address(path, &address);

	*place = (struct ina_shm_place) { -1, -1 };
	if (err)
		goto failed;
	place->lock = take_lock(path);
	err = place->lock < 0 ? place->lock : 0;
	step = err == -EADDRINUSE ? "another backend is there" : "the lock beside it";
	if (!err)
		err = open_it(&address, mode, &place->fd, &step);
	if (!err)
		return 0;
failed:
	snprintf(why, size, "%s: no socket for clients (%s: %s)", path, step, strerror(-err));
	if (place->fd >= 0)
		close(place->fd);
	if (place->lock >= 0)
		drop_lock(path, place->lock);
	return err;
}

void ina_shm_unlisten(const char *path, struct ina_shm_place *place)
{
	unlink(path);
	close(place->fd);
	drop_lock(path, place->lock);
}
