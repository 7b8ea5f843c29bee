/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/peer.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static bool leads_to(int fd, const char *path)
{
	struct sockaddr_un peer = { 0 };
	socklen_t bytes = sizeof(peer);
	const char *name;

	if (getpeername(fd, (struct sockaddr *)&peer, &bytes) || peer.sun_family != AF_UNIX)
		return false;
	name = *peer.sun_path ? peer.sun_path : peer.sun_path + 1;
	return !strncmp(name, path, sizeof(peer.sun_path) - 1);
}

bool ina_peer_connected(const char *path)
{
	DIR *fds = opendir("/proc/self/fd");
	const struct dirent *e;
	bool found = false;

	while (fds && !found && (e = readdir(fds)))
		found = *e->d_name != '.' && leads_to(atoi(e->d_name), path);
	if (fds)
		closedir(fds);
	return found;
}
