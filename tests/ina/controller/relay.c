/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/ina/controller/relay.h"

#include "base/check.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_MS 20

static int socket_at(const char *path, struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && strlen(path) < sizeof(at->sun_path));
	memset(at, 0, sizeof(*at));
	at->sun_family = AF_UNIX;
	strcpy(at->sun_path, path);
	return fd;
}

/* false: the connection is over. */
static bool pass_bytes(int from, int to, bool lose)
{
	char buf[16384];
	ssize_t n = read(from, buf, sizeof(buf));

	return n > 0 && (lose || send(to, buf, (size_t)n, MSG_NOSIGNAL) == n);
}

static void relay_connection(struct relay *r, int client, int controller)
{
	struct pollfd fd[2] = { { .fd = client, .events = POLLIN },
				{ .fd = controller, .events = POLLIN } };
	bool lost = false, open = true;

	while (open && !atomic_load(&r->over)) {
		bool withholds = atomic_load(&r->withholds);

		if (lost && !withholds)
			return;
		if (poll(fd, 2, LOOK_MS) <= 0)
			continue;
		if (fd[0].revents)
			open = pass_bytes(client, controller, false);
		if (open && fd[1].revents) {
			open = pass_bytes(controller, client, withholds);
			lost |= withholds;
		}
	}
}

static void *run_relay(void *arg)
{
	struct relay *r = arg;
	struct pollfd fd = { .fd = r->listener, .events = POLLIN };

	while (!atomic_load(&r->over)) {
		struct sockaddr_un to;
		int client, controller;

		if (poll(&fd, 1, LOOK_MS) <= 0 || (client = accept(r->listener, NULL, NULL)) < 0)
			continue;
		controller = socket_at(r->to, &to);
		if (!connect(controller, (struct sockaddr *)&to, sizeof(to)))
			relay_connection(r, client, controller);
		close(controller);
		close(client);
	}
	return NULL;
}

void relay_start(struct relay *r, const char *at, const char *to)
{
	struct sockaddr_un here;

	memset(r, 0, sizeof(*r));
	snprintf(r->at, sizeof(r->at), "%s", at);
	snprintf(r->to, sizeof(r->to), "%s", to);
	r->listener = socket_at(at, &here);
	CHECK(!bind(r->listener, (struct sockaddr *)&here, sizeof(here)) &&
	      !listen(r->listener, 16));
	CHECK(!pthread_create(&r->thread, NULL, run_relay, r));
}

void relay_stop(struct relay *r)
{
	atomic_store(&r->over, true);
	pthread_join(r->thread, NULL);
	close(r->listener);
	CHECK(!unlink(r->at));
}
