/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a file of groups: what is taken is a group that a switch either installs or refuses with
 * a reason; what is not has its own. */
#include "base/check.h"
#include "ina/switch/group_file.h"

#define SLOTS 65536u
#define LINE 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void install_group(struct ina_switch *sw, const struct ina_group_config *c)
{
	const char *why = NULL;
	int err;

	CHECK(c->ranks >= 2 && c->ranks <= INA_RANKS_MAX && c->len && c->lease_until);
	err = ina_switch_install(sw, c, &why);
	CHECK(!err == !why);
	if (!err)
		ina_switch_remove(sw, c->id, c->epoch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t mac[6];
	static struct ina_switch sw;
	static struct ina_slot slot[SLOTS];

	if (!sw.slot)
		ina_switch_init(&sw, 1, mac, slot, SLOTS);
	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t n = end ? (size_t)(end - data) : size;
		struct ina_group_config c;
		char line[LINE];

		snprintf(line, sizeof(line), "%.*s", (int)(n < LINE ? n : LINE - 1),
			 (const char *)data);
		if (!ina_group_line(line, 1, &c) && c.id)
			install_group(&sw, &c);
		n += end != NULL;
		data += n;
		size -= n;
	}
	return 0;
}
