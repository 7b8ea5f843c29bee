/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cm_commands.h - the commands that librdmacm gives the kernel's connection manager, and its events
 *
 * fd is a channel of softroce_cm_open(). What a test does not expect ends it. Those that return int
 * give 0 or -errno.
 */
#ifndef TESTS_SOFTROCE_CM_COMMANDS_H
#define TESTS_SOFTROCE_CM_COMMANDS_H

#include "softroce/cm/command.h"
#include "softroce/cm/manager.h"
#include "tests/softroce/front_side.h"

#include <netinet/in.h>

#define WAIT_MS 60000 /* an outer limit for hangs */

/* The command's body, and `out` bytes of room for its answer. */
int write_command(int fd, uint32_t number, void *body, size_t len, size_t out);
uint32_t id_create(int fd, uint64_t uid, uint16_t ps);
/* Events that the id's program has taken. */
uint32_t id_destroy(int fd, uint32_t id);
struct sockaddr_in6 make_address(const union ibv_gid *gid, uint16_t port);
int id_bind(int fd, uint32_t id, struct sockaddr_in6 to);
int id_listen(int fd, uint32_t id);
/* -EAGAIN: there is none, and the channel does not wait. */
int event_try(int fd, struct rdma_ucm_event_resp *event);
/* The next event, which must be this one for that id's program. line: of the caller, who is told
 * when none comes. */
struct rdma_ucm_event_resp expect_at(int line, int fd, enum sr_cm_event what, uint64_t uid);
/* No event waits. */
void nothing_more(int fd);
/* Address and route of `to`, both of which must be found. */
void id_resolve(int fd, uint32_t id, uint64_t uid, struct sockaddr_in6 to);
int id_connect(int fd, uint32_t id, uint32_t qpn, const char *words);
int id_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn, const char *words);
int id_disconnect(int fd, uint32_t id);
struct ib_uverbs_qp_attr id_attr(int fd, uint32_t id, enum ibv_qp_state state);
struct rdma_ucm_query_route_resp id_route(int fd, uint32_t id);

#define expect(...) expect_at(__LINE__, __VA_ARGS__)

#endif
