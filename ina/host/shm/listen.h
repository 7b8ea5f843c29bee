/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * listen.h - the backend's socket in the file system
 *
 * A killed backend leaves its socket behind, and who comes next replaces it. Between the look at a
 * dead socket and its removal another backend could put its own there: so whoever looks holds a
 * lock on PATH.lock, and keeps it as long as it serves.
 * The kernel ends the lock with the process.
 */
#ifndef INA_SHM_LISTEN_H
#define INA_SHM_LISTEN_H

#include <stddef.h>

/* A socket, and the lock on its place. */
struct ina_shm_place {
	int fd, lock;
};

/*
 * place->fd: a listening SOCK_SEQPACKET socket. What nobody listens on any more is replaced. 0, or
 * a negative errno and why[size].
 */
int ina_shm_listen(const char *path, unsigned mode, struct ina_shm_place *place, char *why,
		   size_t size);
/* Nothing is left of it in the file system. */
void ina_shm_unlisten(const char *path, struct ina_shm_place *place);

#endif
