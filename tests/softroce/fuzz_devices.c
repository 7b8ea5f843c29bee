/* SPDX-License-Identifier: BSD-3-Clause */
/* Whatever SOFTROCE_DEVICES holds, the parser gives well-formed specifications. */
#include "softroce/devices.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void line_check(void *user, const char *line)
{
	if (strlen(line) > 500)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sr_device_spec specs[SR_DEVICES_MAX];
	char *text = malloc(size + 1);
	int n;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	n = sr_devices_parse(text, specs, SR_DEVICES_MAX, line_check, NULL);
	if (n < 0 || n > SR_DEVICES_MAX)
		abort();
	for (int i = 0; i < n; i++) {
		const struct sr_device_spec *spec = &specs[i];

		if (!memchr(spec->name, 0, sizeof(spec->name)) || !spec->name[0] ||
		    !memchr(spec->ifname, 0, sizeof(spec->ifname)))
			abort();
		if (spec->kind == SR_DEVICE_SUBNET &&
		    (spec->prefix < 8 || spec->prefix > 30 || sr_gid_ipv4(spec->gid) >> 24 != 127))
			abort();
		if (spec->kind == SR_DEVICE_INTERFACE && !spec->ifname[0])
			abort();
	}
	free(text);
	return 0;
}
