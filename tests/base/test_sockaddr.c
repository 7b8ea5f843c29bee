/* SPDX-License-Identifier: BSD-3-Clause */
/* Which texts are addresses, how an address is printed, and which paths a Unix socket may have. */
#include "base/sockaddr.h"

#include "base/check.h"

#include <errno.h>

static void what_is_parsed_is_printed(void)
{
	static const char *const addresses[] = { "10.0.0.1:80", "127.0.0.1:0", "[::1]:65535",
						 "[fd00::1]:4700" };
	char text[HA_SOCKADDR_TEXT_MAX];
	union ha_sockaddr address;

	for (unsigned i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		CHECK_INT(ha_sockaddr_parse(addresses[i], &address), 0);
		CHECK_TEXT(ha_sockaddr_text(&address, text), addresses[i]);
	}
	CHECK_INT(ha_sockaddr_len(&address), sizeof(struct sockaddr_in6));
	CHECK_INT(ha_sockaddr_parse("[fe80::1%lo]:80", &address), 0);
	CHECK_INT(address.in6.sin6_scope_id, 1);
	CHECK_INT(ha_sockaddr_parse("1.2.3.4:80", &address), 0);
	CHECK_INT(ha_sockaddr_len(&address), sizeof(struct sockaddr_in));
}

static void what_is_no_address_is_refused(void)
{
	static const char *const wrong[] = { "",
					     ":80",
					     "nowhere",
					     "127.0.0.1",
					     "127.0.0.1:",
					     "127.0.0.1:65536",
					     "127.0.0.1:4294967376",
					     "127.0.0.1:-1",
					     "127.0.0.1:8x",
					     "[]:80",
					     "[:80",
					     "localhost:80",
					     "[::1:80",
					     "[fe80::1%nosuch0]:80" };
	union ha_sockaddr address;
	char host[80];

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_THAT(ha_sockaddr_parse(wrong[i], &address) == -EINVAL, "\"%s\"", wrong[i]);
	snprintf(host, sizeof(host), "%070d:80", 1);
	CHECK_INT(ha_sockaddr_parse(host, &address), -EINVAL);
}

static void other_families_have_a_text(void)
{
	union ha_sockaddr other = { .sa.sa_family = AF_UNIX };
	char text[HA_SOCKADDR_TEXT_MAX];

	CHECK_TEXT(ha_sockaddr_text(&other, text), "address family 1");
}

static void path_has_a_limit(void)
{
	struct sockaddr_un at;
	char path[sizeof(at.sun_path) + 1];

	memset(path, 'a', sizeof(path));
	path[sizeof(at.sun_path)] = 0;
	CHECK_INT(ha_sockaddr_unix(path, &at), -ENAMETOOLONG);
	CHECK_INT(ha_sockaddr_unix("", &at), -ENAMETOOLONG);
	path[sizeof(at.sun_path) - 1] = 0;
	CHECK_INT(ha_sockaddr_unix(path, &at), 0);
	CHECK_INT(at.sun_family, AF_UNIX);
	CHECK_TEXT(at.sun_path, path);
}

int main(void)
{
	what_is_parsed_is_printed();
	what_is_no_address_is_refused();
	other_families_have_a_text();
	path_has_a_limit();
	return 0;
}
