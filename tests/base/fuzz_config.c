/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration parser: the input is a text for one variable, chosen by the first byte, and for
 * the name check. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const char *name, *text;
};

static const char *input_get(void *user, const char *name)
{
	const struct input *in = user;

	return strcmp(in->name, name) ? NULL : in->text;
}

static void discard_line(int level, unsigned long flags, const char *file, int line,
			 const char *fmt, ...)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ha_config config;
	struct input in;
	char *text;

	if (size < 1)
		return 0;
	ha_log_set_sink(discard_line);
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	in.name = ha_config_name((enum ha_config_id)(data[0] % HA_CONFIG_COUNT));
	in.text = text;
	ha_config_load(&config, input_get, &in);
	/* Whatever was set, what is in force is in range. */
	if (config.poll_batch < 1 || config.poll_batch > 256 || config.max_recvs < 1 ||
	    config.max_recvs > 8 || ha_config_timeout(&config) < 1 ||
	    ha_config_timeout(&config) > 31 ||
	    (uint64_t)config.rto_ms * 1000000 <= 2 * ha_config_window_ns(&config) ||
	    ha_config_rto_ns(&config) != (uint64_t)config.rto_ms * 1000000)
		abort();
	free(text);
	return 0;
}
