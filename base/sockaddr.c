/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/sockaddr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int ha_sockaddr_parse(const char *text, union ha_sockaddr *to)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV },
			*list;
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0,
	       digits = colon ? strspn(colon + 1, "0123456789") : 0;
	char host[64];

	if (!n || n >= sizeof(host))
		return -EINVAL;
	/* the library takes none for 0, and of more its lower half */
	if (!digits || digits > 5 || colon[1 + digits] || atoi(colon + 1) > UINT16_MAX)
		return -EINVAL;
	if (text[0] == '[' && text[n - 1] == ']')
		snprintf(host, sizeof(host), "%.*s", (int)n - 2, text + 1);
	else
		snprintf(host, sizeof(host), "%.*s", (int)n, text);
	if (getaddrinfo(host, colon + 1, &hints, &list))
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	memcpy(to, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

const char *ha_sockaddr_text(const union ha_sockaddr *addr, char *buf)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (addr->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &addr->in.sin_addr, host, sizeof(host));
		snprintf(buf, HA_SOCKADDR_TEXT_MAX, "%s:%d", host, ntohs(addr->in.sin_port));
	} else if (addr->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &addr->in6.sin6_addr, host, sizeof(host));
		snprintf(buf, HA_SOCKADDR_TEXT_MAX, "[%s]:%d", host, ntohs(addr->in6.sin6_port));
	} else {
		snprintf(buf, HA_SOCKADDR_TEXT_MAX, "address family %d", addr->sa.sa_family);
	}
	return buf;
}

socklen_t ha_sockaddr_len(const union ha_sockaddr *addr)
{
	return addr->sa.sa_family == AF_INET ? sizeof(addr->in) : sizeof(addr->in6);
}

int ha_sockaddr_unix(const char *path, struct sockaddr_un *to)
{
	*to = (struct sockaddr_un) { .sun_family = AF_UNIX };
	if (!*path || strlen(path) >= sizeof(to->sun_path))
		return -ENAMETOOLONG;
	strcpy(to->sun_path, path);
	return 0;
}
