/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/drill/port.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/drill/fault.h"

#define ARGUMENTS_MAX 12
#define DETECTION_MS 10000 /* of duplicate addresses, at most */

int port_memory(void)
{
	return memfd_create("ha-drill", MFD_CLOEXEC);
}

bool port_is_up(const char *netdev)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = { 0 };
	bool up;

	if (fd < 0)
		return false;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", netdev);
	up = !ioctl(fd, SIOCGIFFLAGS, &request) && request.ifr_flags & IFF_UP;
	close(fd);
	return up;
}

/*
 * Runs ip(8) with its standard input or output in `fd`; -1: neither. 0 or -EIO. What it says while
 * it restores is dropped: the kernel has put back some of it by itself, and that "File exists".
 */
static int ip_run(int fd, int onto, const char *const *words)
{
	char *argv[ARGUMENTS_MAX + 2] = { "ip" };
	int n = 1, status;
	pid_t pid;

	while (*words && n <= ARGUMENTS_MAX)
		argv[n++] = (char *)(uintptr_t)*words++;
	pid = fork();
	if (!pid) {
		if (fd >= 0 && (lseek(fd, 0, SEEK_SET) < 0 || dup2(fd, onto) < 0))
			_exit(126);
		if (fd >= 0 && onto == STDIN_FILENO)
			dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		execvp("ip", argv);
		fprintf(stderr, "ha drill: cannot run ip: %s (Debian: iproute2)\n",
			strerror(errno));
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -EIO;
	return pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

#define IP(fd, onto, ...) ip_run(fd, onto, (const char *const[]) { __VA_ARGS__, NULL })

/* Whether ip's text has "dev NETDEV": a line per route, or below it one per next hop. */
static bool names_interface(FILE *text, const char *netdev)
{
	char line[512];

	while (fgets(line, sizeof(line), text)) {
		char *save, *word = strtok_r(line, " \t\n", &save);

		while (word && strcmp(word, "dev"))
			word = strtok_r(NULL, " \t\n", &save);
		word = word ? strtok_r(NULL, " \t\n", &save) : NULL;
		if (word && !strcmp(word, netdev))
			return true;
	}
	return false;
}

/*
 * Of table main: those of other tables are for traffic that rules choose, on hosts with several
 * NICs often one for each. (/proc/net/route names one next hop only, /proc/net/ipv6_route no
 * table.) What cannot be known counts as yes.
 */
static bool has_default_route(const char *family, const char *netdev)
{
	int fd = port_memory();
	FILE *text = fd < 0 ? NULL : fdopen(fd, "r");
	bool found = true;

	if (!text) {
		if (fd >= 0)
			close(fd);
		return true;
	}
	if (!IP(fd, STDOUT_FILENO, family, "route", "show", "default")) {
		rewind(text);
		found = names_interface(text, netdev);
	}
	fclose(text);
	return found;
}

bool port_has_default_route(const char *netdev)
{
	return has_default_route("-4", netdev) || has_default_route("-6", netdev);
}

static int save_addresses6(int fd, const char *netdev)
{
	if (ftruncate(fd, 0))
		return -errno;
	return IP(fd, STDOUT_FILENO, "-6", "address", "save", "dev", netdev, "scope", "global");
}

/* Of every table: taken down, the interface loses its routes in each. */
static int save_routes4(int fd, const char *netdev)
{
	if (ftruncate(fd, 0))
		return -errno;
	return IP(fd, STDOUT_FILENO, "-4", "route", "save", "table", "all", "dev", netdev);
}

/*
 * Without those of type local, anycast and multicast, which the kernel makes of the addresses: it
 * does so when an address has passed its duplicate address detection, and one that was restored
 * before would stay when the address is removed.
 */
static int save_routes6(int fd, const char *netdev)
{
	if (ftruncate(fd, 0))
		return -errno;
	return IP(fd, STDOUT_FILENO, "-6", "route", "save", "table", "all", "type", "unicast",
		  "dev", netdev);
}

/* An empty file is nothing to restore. */
static int restore_network(int fd, const char *family, const char *what)
{
	return lseek(fd, 0, SEEK_END) > 0 ? IP(fd, STDIN_FILENO, family, what, "restore") : 0;
}

/* /proc/net/if_inet6: "address index length scope flags name", in hexadecimal. */
static bool has_tentative_address(const char *netdev)
{
	FILE *file = fopen("/proc/net/if_inet6", "re");
	char line[256], name[64];
	bool found = false;
	unsigned flags;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%*s %*x %*x %*x %x %63s", &flags, name) == 2 &&
			!strcmp(name, netdev) && flags & IFA_F_TENTATIVE &&
			!(flags & IFA_F_DADFAILED);
	fclose(file);
	return found;
}

static void await_addresses(const char *netdev)
{
	for (int i = 0; i < DETECTION_MS / 50 && has_tentative_address(netdev); i++)
		usleep(50000);
}

/* A route that names its source is refused until duplicate address detection has passed the
 * address, a second or two after the port has its carrier. */
static int restore_routes6(int fd, const char *netdev)
{
	bool early = has_tentative_address(netdev);
	int err = restore_network(fd, "-6", "route");

	if (!err || !early)
		return err;
	await_addresses(netdev);
	return restore_network(fd, "-6", "route");
}

int port_take_down(const char *netdev, struct fault_saved *saved)
{
	if (save_routes4(saved->routes4, netdev) || save_routes6(saved->routes6, netdev) ||
	    save_addresses6(saved->addresses6, netdev))
		return -EIO;
	return IP(-1, 0, "link", "set", "dev", netdev, "down");
}

int port_put_back(const char *netdev, struct fault_saved *saved)
{
	int err;

	if (!if_nametoindex(netdev))
		return -ESRCH; /* unplugged meanwhile */
	err = IP(-1, 0, "link", "set", "dev", netdev, "up");
	if (!err)
		err = restore_network(saved->addresses6, "-6", "address");
	if (!err)
		err = restore_network(saved->routes4, "-4", "route");
	return err ? err : restore_routes6(saved->routes6, netdev);
}
