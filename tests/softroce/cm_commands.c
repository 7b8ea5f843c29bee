/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/softroce/cm_commands.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>

int write_command(int fd, uint32_t number, void *body, size_t len, size_t out)
{
	uint8_t bytes[sizeof(struct rdma_ucm_cmd_hdr) + sizeof(struct rdma_ucm_join_mcast) + 512];
	struct rdma_ucm_cmd_hdr hdr = { number, (uint16_t)len, (uint16_t)out };

	CHECK(len <= sizeof(bytes) - sizeof(hdr));
	memcpy(bytes, &hdr, sizeof(hdr));
	memcpy(bytes + sizeof(hdr), body, len);
	return softroce_cm_write(fd, bytes, sizeof(hdr) + len) == (ssize_t)(sizeof(hdr) + len)
		       ? 0
		       : -errno;
}

uint32_t id_create(int fd, uint64_t uid, uint16_t ps)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct rdma_ucm_create_id cmd = { .uid = uid,
					  .response = (uintptr_t)&resp,
					  .ps = ps,
					  .qp_type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC };

	CHECK(!write_command(fd, RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp)));
	return resp.id;
}

uint32_t id_destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	struct rdma_ucm_destroy_id cmd = { .response = (uintptr_t)&resp, .id = id };

	CHECK(!write_command(fd, RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(resp)));
	return resp.events_reported;
}

struct sockaddr_in6 make_address(const union ibv_gid *gid, uint16_t port)
{
	struct sockaddr_in6 to = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&to;

	in->sin_family = AF_INET;
	in->sin_port = htons(port);
	memcpy(&in->sin_addr, gid->raw + 12, 4);
	return to;
}

int id_bind(int fd, uint32_t id, struct sockaddr_in6 to)
{
	struct rdma_ucm_bind_ip cmd = { .addr = to, .id = id };

	return write_command(fd, RDMA_USER_CM_CMD_BIND_IP, &cmd, sizeof(cmd), 0);
}

int id_listen(int fd, uint32_t id)
{
	struct rdma_ucm_listen cmd = { .id = id, .backlog = 8 };

	return write_command(fd, RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0);
}

int event_try(int fd, struct rdma_ucm_event_resp *event)
{
	struct rdma_ucm_get_event cmd = { .response = (uintptr_t)event };

	return write_command(fd, RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(*event));
}

struct rdma_ucm_event_resp expect_at(int line, int fd, enum sr_cm_event what, uint64_t uid)
{
	struct rdma_ucm_event_resp event = { 0 };
	struct pollfd wait = { fd, POLLIN, 0 };

	if (poll(&wait, 1, WAIT_MS) != 1) {
		fprintf(stderr, "line %d: no event; expected %d of %llu\n", line, what,
			(unsigned long long)uid);
		exit(1);
	}
	CHECK(!event_try(fd, &event));
	if (event.event != what || event.uid != uid)
		fprintf(stderr, "event %u of %llu, status %d; expected %d of %llu\n", event.event,
			(unsigned long long)event.uid, (int)event.status, what,
			(unsigned long long)uid);
	CHECK(event.event == what && event.uid == uid);
	return event;
}

void nothing_more(int fd)
{
	struct rdma_ucm_event_resp event;
	int flags = fcntl(fd, F_GETFL);

	CHECK(!fcntl(fd, F_SETFL, flags | O_NONBLOCK));
	CHECK(event_try(fd, &event) == -EAGAIN);
	CHECK(!fcntl(fd, F_SETFL, flags));
}

void id_resolve(int fd, uint32_t id, uint64_t uid, struct sockaddr_in6 to)
{
	struct rdma_ucm_resolve_ip addr = { .dst_addr = to, .id = id, .timeout_ms = 2000 };
	struct rdma_ucm_resolve_route route = { .id = id, .timeout_ms = 2000 };

	CHECK(!write_command(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &addr, sizeof(addr), 0));
	CHECK(!expect(fd, SR_CM_ADDR_RESOLVED, uid).status);
	CHECK(!write_command(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &route, sizeof(route), 0));
	CHECK(!expect(fd, SR_CM_ROUTE_RESOLVED, uid).status);
}

int id_connect(int fd, uint32_t id, uint32_t qpn, const char *words)
{
	struct rdma_ucm_connect cmd = { .id = id,
					.conn_param = { .qp_num = qpn,
							.responder_resources = 3,
							.initiator_depth = 2,
							.retry_count = 5,
							.rnr_retry_count = 6,
							.valid = 1 } };

	cmd.conn_param.private_data_len = (uint8_t)(strlen(words) + 1);
	memcpy(cmd.conn_param.private_data, words, strlen(words) + 1);
	return write_command(fd, RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0);
}

int id_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn, const char *words)
{
	struct rdma_ucm_accept cmd = { .uid = uid,
				       .id = id,
				       .conn_param = { .qp_num = qpn,
						       .responder_resources = 2,
						       .initiator_depth = 3,
						       .rnr_retry_count = 4,
						       .valid = words != NULL } };

	if (words) {
		cmd.conn_param.private_data_len = (uint8_t)(strlen(words) + 1);
		memcpy(cmd.conn_param.private_data, words, strlen(words) + 1);
	}
	return write_command(fd, RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0);
}

int id_disconnect(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect cmd = { .id = id };

	return write_command(fd, RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0);
}

struct ib_uverbs_qp_attr id_attr(int fd, uint32_t id, enum ibv_qp_state state)
{
	struct ib_uverbs_qp_attr attr = { 0 };
	struct rdma_ucm_init_qp_attr cmd = { .response = (uintptr_t)&attr,
					     .id = id,
					     .qp_state = state };

	CHECK(!write_command(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(attr)));
	return attr;
}

struct rdma_ucm_query_route_resp id_route(int fd, uint32_t id)
{
	struct rdma_ucm_query_route_resp resp = { 0 };
	struct rdma_ucm_query cmd = { .response = (uintptr_t)&resp, .id = id };

	CHECK(!write_command(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, &cmd, sizeof(cmd), sizeof(resp)));
	return resp;
}
