/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/device/budget.h"

#include "base/check.h"

static void expect_comms(int max_qp, int max_cqe, int channels, int wr, int recvs, int expected)
{
	struct ha_budget b = { max_qp, max_cqe, channels, wr, recvs, 0, 0, 0 };

	ha_budget_compute(&b);
	CHECK_INT(b.max_comms, expected);
}

int main(void)
{
	struct ha_budget b = { 131072, 4194303, 16, 64, 8, 0, 0, 0 };

	/* ConnectX-6 with the defaults: 131072 / 32 queue pairs; 4194303 / ((64 x 8 + 64) x 32)
	 * completions. */
	ha_budget_compute(&b);
	CHECK_INT(b.by_qp, 4096);
	CHECK_INT(b.by_cqe, 227);
	CHECK_INT(b.max_comms, 227);
	expect_comms(131072, 4194303, 16, 64, 1, 256); /* 1023 by completions, 256 at most */
	expect_comms(256, 4194303, 16, 64, 8, 8);      /* few queue pairs */
	expect_comms(16, 4194303, 16, 64, 8, 1);       /* never 0 */
	expect_comms(0, 0, 16, 64, 8, 1);
	expect_comms(2147483647, 2147483647, 1, 1, 1, 256);
	expect_comms(2147483647, 2147483647, 1024, 8192, 8,
		     14); /* 603979776 x ... must not overflow */
	return 0;
}
