/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * refused.c - calls a program may make of a NIC that this one does not serve, answered as a driver
 * without the feature answers them, and the few that need no NIC at all
 */
#include "softroce/verbs/objects.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * ---- fork: nothing is pinned and nothing is written by hardware, so copy-on-write does no harm
 * ----
 */

int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size);
int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size);
int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

/* ---- multicast ---- */

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return EOPNOTSUPP;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	return EOPNOTSUPP; /* the kernel's IP stack does this below our sockets */
}

/* ---- objects of the kernel's that another process shares ---- */

struct ibv_context *ibv_import_device(int cmd_fd)
{
	return sr_fail(EOPNOTSUPP);
}

struct ibv_pd *ibv_import_pd(struct ibv_context *context, uint32_t handle)
{
	return sr_fail(EOPNOTSUPP);
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t handle)
{
	return sr_fail(EOPNOTSUPP);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
}

struct ibv_dm *ibv_import_dm(struct ibv_context *context, uint32_t handle)
{
	return sr_fail(EOPNOTSUPP);
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
}

/* ---- enhanced connection establishment: a matter of hardware vendors ---- */

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	memset(ece, 0, sizeof(*ece));
	return EOPNOTSUPP;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	return ece->vendor_id ? EOPNOTSUPP : 0;
}

/* ---- sysfs ---- */

const char *ibv_get_sysfs_path(void);
const char *ibv_get_sysfs_path(void)
{
	return "/sys";
}

/* The first line of a small file, without its newline; its length or -1. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	ssize_t n;
	int fd;

	if (!size || snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n < 0)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = 0;
	else if ((size_t)n < size)
		buf[n] = 0;
	else
		return -1;
	return n;
}

void ibv_register_driver(const char *name, void *init);
void ibv_register_driver(const char *name, void *init)
{
	/* Drivers of 2006 announce themselves here; there is no hardware for them to drive. */
}
