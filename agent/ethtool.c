/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/ethtool.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define COUNTERS_MAX 16384 /* mlx5 has about 1500 */

static int send_command(int fd, const char *interface, void *data)
{
	struct ifreq request = { .ifr_data = data };

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	return ioctl(fd, SIOCETHTOOL, &request) ? -errno : 0;
}

static int fetch_counters(int fd, const char *interface, uint32_t n, ha_ethtool_fn fn, void *user)
{
	struct ethtool_gstrings *names = calloc(1, sizeof(*names) + (size_t)n * ETH_GSTRING_LEN);
	struct ethtool_stats *values = calloc(1, sizeof(*values) + (size_t)n * sizeof(uint64_t));
	int err = names && values ? 0 : -ENOMEM;

	if (!err) {
		names->cmd = ETHTOOL_GSTRINGS;
		names->string_set = ETH_SS_STATS;
		names->len = n;
		values->cmd = ETHTOOL_GSTATS;
		values->n_stats = n;
		err = send_command(fd, interface, names);
	}
	if (!err)
		err = send_command(fd, interface, values);
	for (uint32_t i = 0; !err && i < n && i < values->n_stats && i < names->len; i++) {
		char name[ETH_GSTRING_LEN + 1] = "";

		memcpy(name, names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		fn(user, name, values->data[i]);
	}
	free(names);
	free(values);
	return err;
}

static int ask_driver(const char *interface, ha_ethtool_fn fn, void *user)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	int err, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	err = send_command(fd, interface, &info);
	if (!err && info.n_stats > COUNTERS_MAX)
		err = -E2BIG;
	if (!err && info.n_stats)
		err = fetch_counters(fd, interface, info.n_stats, fn, user);
	close(fd);
	return err;
}

static int read_file(const char *root, const char *interface, ha_ethtool_fn fn, void *user)
{
	char path[512], line[256], name[128];
	unsigned long long value;
	FILE *file;

	snprintf(path, sizeof(path), "%s/ethtool/%s", root, interface);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %127[^: ]: %llu", name, &value) == 2)
			fn(user, name, value);
	fclose(file);
	return 0;
}

int ha_ethtool_each(const char *root, const char *interface, ha_ethtool_fn fn, void *user)
{
	return *root ? read_file(root, interface, fn, user) : ask_driver(interface, fn, user);
}
