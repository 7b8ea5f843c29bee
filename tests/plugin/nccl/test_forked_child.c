/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child after fork() without exec held the sockets of the connections: a peer noticed the
 * parent's death after 82 s instead of at once. It holds none, and the parent's connections go on.
 */
#include "tests/plugin/nccl/rig.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* TCP sockets of this process. No memory is allocated: in a child of a process with threads a
 * sanitizer's allocator may be locked for ever. */
static int count_sockets(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++) {
		int protocol = 0;
		socklen_t len = sizeof(protocol);

		if (!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
		    protocol == IPPROTO_TCP)
			n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	static uint8_t from[4096], to[4096];
	void *from_mr, *to_mr, *send, *recv;
	int status, before, done = 0, size = 0;
	struct rig_pair pair;
	struct rig rig;
	pid_t child;

	rig_open(&rig, argc, argv);
	rig_pair_open(&rig, &pair);
	before = count_sockets();
	CHECK(before > 0, "the connection has no socket");
	child = fork();
	if (!child)
		_exit(count_sockets() > 100 ? 100 : count_sockets());
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status), "the child died");
	CHECK(WEXITSTATUS(status) == 0, "the child holds %d TCP sockets", WEXITSTATUS(status));
	CHECK(count_sockets() == before, "the parent has %d TCP sockets, %d before",
	      count_sockets(), before);

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7);
	from_mr = rig_reg(&rig, pair.send, from, sizeof(from));
	to_mr = rig_reg(&rig, pair.recv, to, sizeof(to));
	recv = rig_irecv(&rig, pair.recv, to, sizeof(to), 1, to_mr);
	send = rig_isend(&rig, pair.send, from, sizeof(from), 1, from_mr);
	while (!done)
		OK(rig.plugin.test(recv, &done, &size));
	for (done = 0; !done;)
		OK(rig.plugin.test(send, &done, NULL));
	CHECK(!memcmp(from, to, sizeof(to)), "the bytes");
	OK(rig.plugin.dereg(pair.send, from_mr));
	OK(rig.plugin.dereg(pair.recv, to_mr));
	rig_pair_close(&rig, &pair);
	rig_close(&rig);
	return 0;
}
