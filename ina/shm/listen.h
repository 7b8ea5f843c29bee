/* SPDX-License-Identifier: BSD-3-Clause */
/* listen.h - the backend's socket in the file system */
#ifndef INA_SHM_LISTEN_H
#define INA_SHM_LISTEN_H

#include <stddef.h>
#include <sys/un.h>

/* A path as an address. 0, or -ENAMETOOLONG. */
int ina_shm_address(const char *path, struct sockaddr_un *address);
/* A listening SOCK_SEQPACKET socket, or a negative errno and why[size]. What nobody listens on any more is replaced. */
int ina_shm_listen(const char *path, unsigned mode, char *why, size_t size);

#endif
