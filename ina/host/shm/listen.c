/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/host/shm/listen.h"

#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool is_stale(const char *path)
{
	int fd = ha_socket_connect_unix(path, SOCK_SEQPACKET, 0);

	if (fd >= 0)
		close(fd);
	return fd == -ECONNREFUSED;
}

/* With the lock. A socket, or a negative errno and *step. */
static int open_it(const char *path, unsigned mode, const char **step)
{
	int fd = ha_socket_listen_unix(path, SOCK_SEQPACKET, mode);

	*step = "bind";
	if (fd != -EADDRINUSE)
		return fd;
	if (!is_stale(path)) {
		*step = "another backend, or something else, is there";
		return fd;
	}
	unlink(path);
	return ha_socket_listen_unix(path, SOCK_SEQPACKET, mode);
}

/* What to do about it; "" where that is in what is said. */
static const char *choose_advice(int err)
{
	if (err == -ENOENT)
		return "; make its directory, or name a socket elsewhere: --socket here, "
		       "NETCCL_BACKEND for the clients, too";
	if (err == -EACCES || err == -EROFS)
		return "; name a socket elsewhere: --socket here, NETCCL_BACKEND for the clients, "
		       "too";
	return "";
}

int ina_shm_listen(const char *path, unsigned mode, struct ina_shm_place *place, char *why,
		   size_t size)
{
	struct sockaddr_un address;
	const char *step = "the path is too long";
	int err = ha_sockaddr_unix(path, &address);

	*place = (struct ina_shm_place) { -1, -1 };
	if (err)
		goto failed;
	place->lock = take_lock(path);
	err = place->lock < 0 ? place->lock : 0;
	step = err == -EADDRINUSE ? "another backend is there" : "the lock beside it";
	if (err)
		goto failed;
	place->fd = open_it(path, mode, &step);
	if (place->fd >= 0)
		return 0;
	err = place->fd;
failed:
	snprintf(why, size, "%s: no socket for clients (%s: %s)%s", path, step, strerror(-err),
		 choose_advice(err));
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
