/* SPDX-License-Identifier: BSD-3-Clause */
/* test_authority.c - what a ha-controller's silence means to a backend */
#include "base/sockaddr.h"
#include "ina/host/backend/authority_controller.h"
#include "tests/ina/switch/named.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* A controller that takes the connection and never says a word, as one that was stopped does:
 * nobody knows whether the group incarnations, so it goes on. */
static void controller_hangs(void)
{
	struct ha_group_facts g = {
		.id = 1, .ranks = 2, .workers = 1, .key = 7, .switch_name = "leaf"
	};
	const struct ha_group_defaults defaults = { .workers = 1,
						    .extended = true,
						    .lease_ms = 1000 };
	char path[64], address[80], why[320] = "";
	struct ha_authority *a;
	struct sockaddr_un at;
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	snprintf(path, sizeof(path), "/tmp/ina-hangs-%d.sock", (int)getpid());
	snprintf(address, sizeof(address), "unix:%s", path);
	CHECK_INT(ha_sockaddr_unix(path, &at), 0);
	CHECK_INT(bind(s, (struct sockaddr *)&at, sizeof(at)), 0);
	CHECK_INT(listen(s, 8), 0);
	a = ha_authority_controller_open(&defaults,
					 &(struct ha_ina_client_options) { .address = address,
									   .deadline_ms = 300,
									   .retry = true },
					 why, sizeof(why));
	CHECK(a);
	err = a->ops->renew(a, &g, 0, 1, why, sizeof(why));
	CHECK(strstr(why, "no answer within 300 ms"));
	/* these two are the group's end (authority.h) */
	CHECK(err < 0 && err != -ETIMEDOUT && err != -ECANCELED);
	a->ops->close(a);
	close(s);
	unlink(path);
}

int main(int argc, char **argv)
{
	static const struct named_test tests[] = { { "hangs", controller_hangs } };

	alarm(850);
	return NAMED_TESTS_RUN(tests, argc, argv);
}
