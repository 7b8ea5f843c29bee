/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h - the private interface between librdmacm and the kernel (rdma/rdma_user_cm.h), served
 * in this process
 *
 * These three stand behind open(), write() and close() of /dev/infiniband/rdma_cm;
 * softroce/paths/paths.c calls them.
 */
#ifndef SOFTROCE_CM_COMMAND_H
#define SOFTROCE_CM_COMMAND_H

#include <stddef.h>
#include <sys/types.h>

/* A descriptor, or -1 and errno. It can be polled for events, and be made non-blocking. */
int softroce_cm_open(void);
/* One command. len, or -1 and errno. */
ssize_t softroce_cm_write(int fd, const void *command, size_t len);
/* 0, or -1: not one of ours. Its connections end. */
int softroce_cm_close(int fd);

#endif
