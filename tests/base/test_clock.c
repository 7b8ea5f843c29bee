/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks and random bytes. */
#include "base/clock.h"
#include "base/random.h"

#include "base/check.h"

int main(void)
{
	struct ha_clock_virtual virt = HA_CLOCK_VIRTUAL_INIT(5 * HA_NS_PER_MS);
	uint64_t a = ha_clock_now(&ha_clock_live), b = ha_clock_now(&ha_clock_live);
	unsigned char bytes[2][300];

	CHECK(a > 0 && b >= a);
	CHECK_INT(ha_clock_now(&virt.clock), 5000000);
	virt.now += HA_NS_PER_S;
	CHECK_INT(ha_clock_now(&virt.clock), 1005000000);

	ha_random_bytes(bytes[0], sizeof(bytes[0]));
	ha_random_bytes(bytes[1], sizeof(bytes[1]));
	CHECK(memcmp(bytes[0], bytes[1], sizeof(bytes[0])));
	CHECK(ha_random_u64() != ha_random_u64());
	return 0;
}
