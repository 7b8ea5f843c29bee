/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles as NCCL may carry them: the input is one. What passes the check is dialled. The last
 * byte, if odd, mends the magic and the versions, so that the rest is reached. */
#include "base/check.h"
#include "base/log.h"
#include "tests/plugin/dummy.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void discard_line(int level, unsigned long flags, const char *file, int line,
			 const char *fmt, ...)
{
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct world w;
	char handle[HA_HANDLE_MAX] = { 0 };
	struct ha_wire_handle *h = (struct ha_wire_handle *)handle;
	struct ha_send *send = NULL;
	const char *why = NULL;
	int err = 0, sound;

	ha_log_set_sink(discard_line);
	memcpy(handle, data, size < sizeof(handle) ? size : sizeof(handle));
	if (size && data[size - 1] & 1) {
		h->magic = HA_WIRE_MAGIC;
		h->version = h->version_min = 1;
	}
	sound = ha_wire_check_handle(handle, &why) == 0;
	CHECK(sound == !why);
	world_open(&w);
	for (int i = 0; i < 700 && !err; i++) {
		err = ha_connect(w.b, 0, NULL, handle, &send);
		CHECK(!send);
		w.clock.now += 100 * HA_NS_PER_MS;
	}
	CHECK(err);
	CHECK(sound || err == -EPROTO);
	world_close(&w);
	return 0;
}
