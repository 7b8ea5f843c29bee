/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of settings: what is accepted makes sense, what is not has a reason. */
#include "ina/controller/settings.h"

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ha_settings s;
	char why[128] = "";
	FILE *file;

	if (!size)
		return 0;
	file = fmemopen((void *)(uintptr_t)data, size, "r");
	CHECK(file);
	ha_settings_default(&s);
	if (ha_settings_read(&s, file, why, sizeof(why))) {
		CHECK(*why);
	} else {
		CHECK(s.limits.lease_min_ms <= s.limits.lease_max_ms &&
		      ha_buddy_length_valid(s.limits.length));
		for (unsigned i = 0; i < s.nsw; i++)
			CHECK(ha_switch_name_valid(s.sw[i].name) && s.sw[i].nserves &&
			      s.sw[i].slots <= HA_BUDDY_SLOTS);
	}
	fclose(file);
	return 0;
}
