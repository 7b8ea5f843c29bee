/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma/topo/port_errors.h"

#include "rdma/topo/sysfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long read_counter(const char *root, const char *device, int port, const char *name)
{
	return ha_sysfs_number(root, -1, "/sys/class/infiniband/%s/ports/%d/counters/%s", device,
			       port, name);
}

bool ha_port_errors_read(const char *sysfs_root, const char *device, int port,
			 struct ha_port_errors *errors)
{
	errors->symbols = read_counter(sysfs_root, device, port, "symbol_error");
	errors->downs = read_counter(sysfs_root, device, port, "link_downed");
	errors->recoveries = read_counter(sysfs_root, device, port, "link_error_recovery");
	return errors->symbols > 0 || errors->downs > 0 || errors->recoveries > 0;
}

static void append_count(char *text, size_t size, const char *format, long n)
{
	size_t at = strlen(text);

	if (n <= 0)
		return;
	if (at && at + 2 < size) {
		memcpy(text + at, ", ", 3);
		at += 2;
	}
	snprintf(text + at, size - at, format, n);
}

const char *ha_port_errors_text(const char *sysfs_root, const char *label, char *text, size_t size)
{
	const char *colon = strrchr(label, ':');
	struct ha_port_errors errors;
	char device[64];

	*text = 0;
	if (!colon)
		return text;
	snprintf(device, sizeof(device), "%.*s", (int)(colon - label), label);
	if (!ha_port_errors_read(sysfs_root, device, atoi(colon + 1), &errors))
		return text;
	append_count(text, size, "%ld symbol errors", errors.symbols);
	append_count(text, size, "link down %ld times", errors.downs);
	append_count(text, size, "link recovered %ld times", errors.recoveries);
	return text;
}
