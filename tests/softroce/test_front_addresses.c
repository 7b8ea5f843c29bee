/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses out of a subnet: every process gets its own, the lowest free one; opening twice gives
 * the same, and the same device in every list as long as anybody has it; the list and what is
 * opened from it agree; a process that only lists gives it back with the list.
 */
#include "tests/softroce/front_side.h"

#include <sys/socket.h>
#include <sys/wait.h>

#define PROCESSES 14 /* host addresses of a /28 */

static uint8_t first[4]; /* the lowest address of this run's own subnet */

static union ibv_gid gid_of(struct ibv_context *context)
{
	union ibv_gid gid;

	CHECK(!ibv_query_gid(context, 1, 0, &gid));
	return gid;
}

static void open_twice(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **again;
	struct ibv_context *one, *two;
	union ibv_gid a, b;

	CHECK(list && list[0]);
	one = ibv_open_device(list[0]);
	again = ibv_get_device_list(NULL);
	CHECK(again[0] == list[0]); /* librdmacm takes another pointer for another device */
	ibv_free_device_list(list);
	list = ibv_get_device_list(NULL);
	CHECK(again[0] == list[0]);
	ibv_free_device_list(list);
	two = ibv_open_device(again[0]);
	CHECK(one && two && one->device == two->device);
	a = gid_of(one);
	b = gid_of(two);
	CHECK(!memcmp(&a, &b, sizeof(a)));
	CHECK(!memcmp(a.raw + 12, first, 4));
	CHECK(ibv_get_device_guid(again[0]) == ibv_get_device_guid(one->device));
	ibv_free_device_list(again);
	CHECK(!ibv_close_device(one));
	CHECK(!ibv_close_device(two));
}

static void listed_only(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list && list[0]);
	ibv_free_device_list(list);
	/* The next process finds the lowest address free again: open_twice() in it checks that. */
	if (!fork()) {
		open_twice();
		_exit(0);
	}
	int status;

	CHECK(wait(&status) > 0 && !status);
}

/* Each child opens, prints its address, and holds it until it is to end. */
static void hold_address(int fd)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	uint8_t last = 0, go;

	if (context)
		last = gid_of(context).raw[15];
	CHECK(send(fd, &last, 1, MSG_NOSIGNAL) == 1);
	CHECK(recv(fd, &go, 1, 0) >= 0);
	if (context)
		ibv_close_device(context);
	if (list)
		ibv_free_device_list(list);
	_exit(0);
}

static void many_processes(void)
{
	int fds[PROCESSES + 1][2], got = 0, none = 0;
	bool seen[256] = { false };

	for (int i = 0; i <= PROCESSES; i++) {
		CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]));
		if (!fork()) {
			close(fds[i][0]);
			hold_address(fds[i][1]);
		}
		close(fds[i][1]);
	}
	for (int i = 0; i <= PROCESSES; i++) {
		uint8_t last;

		CHECK(recv(fds[i][0], &last, 1, 0) == 1);
		if (!last) {
			none++;
			continue;
		}
		CHECK(!seen[last]);
		seen[last] = true;
		got++;
	}
	CHECK(got == PROCESSES && none == 1); /* one too many: it gets a line and no device */
	for (int i = 0; i <= PROCESSES; i++)
		close(fds[i][0]);
	for (int i = 0; i <= PROCESSES; i++) {
		int status;

		CHECK(wait(&status) > 0 && !status);
	}
}

int main(void)
{
	char subnet[32];

	first[0] = 127;
	first[1] = 128 + getpid() / 256 % 64;
	first[2] = getpid() % 256;
	first[3] = 1;
	snprintf(subnet, sizeof(subnet), "127.%d.%d.0/28", first[1], first[2]);
	side_isolate(subnet);
	listed_only();
	open_twice();
	many_processes();
	return 0;
}
