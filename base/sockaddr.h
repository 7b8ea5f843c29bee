/* SPDX-License-Identifier: BSD-3-Clause */
/* sockaddr.h - where a socket is: numeric addresses of TCP, and paths of Unix sockets */
#ifndef HA_BASE_SOCKADDR_H
#define HA_BASE_SOCKADDR_H

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

union ha_sockaddr {
	struct sockaddr sa; /* AF_INET or AF_INET6 */
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

#define HA_SOCKADDR_TEXT_MAX 64

/* "10.0.0.1:80", "[fe80::1%eth0]:80": a number as host, and a port of 0 to 65535. 0 or -EINVAL. */
int ha_sockaddr_parse(const char *text, union ha_sockaddr *to);
/* "10.0.0.1:4791" or "[fe80::1]:4791". Returns buf (HA_SOCKADDR_TEXT_MAX bytes). */
const char *ha_sockaddr_text(const union ha_sockaddr *addr, char *buf);
/* Bytes, by its family. */
socklen_t ha_sockaddr_len(const union ha_sockaddr *addr);
/* 0, or -ENAMETOOLONG: longer than a socket's path may be (107 bytes), or empty. */
int ha_sockaddr_unix(const char *path, struct sockaddr_un *to);

#endif
