/* SPDX-License-Identifier: BSD-3-Clause */
/* Shares of rails: what an operator may write in HA_NCCL_WEIGHTS, and proportions that add up to
 * 1024. */
#include "base/check.h"
#include "plugin/balance/share.h"

#include <errno.h>

static void expect_weights(const char *text, unsigned n, const uint16_t *of)
{
	struct ha_weights w;

	CHECK_INT(ha_weights_parse(text, &w), 0);
	CHECK_INT(w.n, n);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(w.of[i], of[i]);
}

static void test_what_is_taken(void)
{
	expect_weights("", 0, NULL);
	expect_weights("512,512", 2, (uint16_t[]) { 512, 512 });
	expect_weights("1024", 1, (uint16_t[]) { 1024 });
	expect_weights("0,1024,0", 3, (uint16_t[]) { 0, 1024, 0 });
	expect_weights("1,2,3,4,5,6,7,8", 8, (uint16_t[]) { 1, 2, 3, 4, 5, 6, 7, 8 });
}

static void test_what_is_refused(void)
{
	static const char *const bad[] = { "0",
					   "0,0",
					   "1025",
					   "-1,5",
					   "+5",
					   "a",
					   "5,",
					   ",5",
					   "5,,5",
					   " 5",
					   "5 ",
					   "5;5",
					   "5.5",
					   "99999999999999999999",
					   "1,2,3,4,5,6,7,8,9" };
	struct ha_weights w;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (ha_weights_parse(bad[i], &w) != -EINVAL)
			fprintf(stderr, "'%s' is taken\n", bad[i]);
		CHECK_INT(ha_weights_parse(bad[i], &w), -EINVAL);
	}
}

static void expect_shares(const uint32_t *part, unsigned n, const uint16_t *want)
{
	uint16_t share[HA_MAX_RAILS];

	ha_share_out(part, n, share);
	for (unsigned i = 0; i < n; i++)
		CHECK_INT(share[i], want[i]);
}

static void test_known_shares(void)
{
	expect_shares((uint32_t[]) { 7 }, 1, (uint16_t[]) { 1024 });
	expect_shares((uint32_t[]) { 100000, 100000 }, 2, (uint16_t[]) { 512, 512 });
	expect_shares((uint32_t[]) { 0, 0, 0, 0 }, 4, (uint16_t[]) { 256, 256, 256, 256 });
	expect_shares((uint32_t[]) { 400, 234 }, 2, (uint16_t[]) { 646, 378 });
	expect_shares((uint32_t[]) { 1, 0 }, 2, (uint16_t[]) { 1024, 0 });
	expect_shares((uint32_t[]) { 0, 3, 1 }, 3, (uint16_t[]) { 0, 768, 256 });
	expect_shares((uint32_t[]) { UINT32_MAX, UINT32_MAX }, 2, (uint16_t[]) { 512, 512 });
}

/* All of it is given away, each part to within one, and nothing to a part of 0. */
static void test_any_shares(void)
{
	uint64_t seed = 1;

	for (int round = 0; round < 50000; round++) {
		uint32_t part[HA_MAX_RAILS];
		uint16_t share[HA_MAX_RAILS];
		unsigned n = 1 + (unsigned)round % HA_MAX_RAILS, sum = 0;
		uint64_t all = 0;

		for (unsigned i = 0; i < n; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			part[i] = (uint32_t)(seed >> 33) >> (seed >> 28 & 31);
			all += part[i];
		}
		ha_share_out(part, n, share);
		for (unsigned i = 0; i < n; i++) {
			double exact = all ? (double)part[i] * HA_SHARE_ALL / (double)all
					   : (double)HA_SHARE_ALL / n;

			CHECK(share[i] >= exact - 1 && share[i] <= exact + 1);
			CHECK(!all || part[i] || !share[i]);
			sum += share[i];
		}
		CHECK_INT(sum, HA_SHARE_ALL);
	}
}

int main(void)
{
	test_what_is_taken();
	test_what_is_refused();
	test_known_shares();
	test_any_shares();
	return 0;
}
