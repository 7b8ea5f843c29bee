/* SPDX-License-Identifier: BSD-3-Clause */
/* Mbit/s from width and rate, as NCCL reports them. */
#include "rdma/topo/speed.h"

#include "base/check.h"
#include "tests/rdma/verbs/fake.h"

int main(void)
{
	enum { X1 = 1, X4 = 2, X8 = 4, X12 = 8, X2 = 16 };
	struct fake_device device = { .name = "mlx5_0",
				      .nports = 1,
				      .ports = { fake_roce_port("10.0.0.1") } };
	struct fake_verbs fake;
	struct ibv_device **list;
	struct ibv_context *context;
	struct ha_port_attr attr;
	int n;

	CHECK_INT(ha_speed_mbps(X1, 1, 0), 2500);     /* SDR */
	CHECK_INT(ha_speed_mbps(X4, 2, 0), 20000);    /* DDR */
	CHECK_INT(ha_speed_mbps(X4, 4, 0), 40000);    /* QDR */
	CHECK_INT(ha_speed_mbps(X4, 8, 0), 40000);    /* FDR10 */
	CHECK_INT(ha_speed_mbps(X4, 16, 0), 56000);   /* FDR */
	CHECK_INT(ha_speed_mbps(X4, 32, 0), 100000);  /* EDR */
	CHECK_INT(ha_speed_mbps(X2, 64, 0), 100000);  /* HDR100 */
	CHECK_INT(ha_speed_mbps(X4, 64, 0), 200000);  /* HDR */
	CHECK_INT(ha_speed_mbps(X4, 128, 0), 400000); /* NDR */
	CHECK_INT(ha_speed_mbps(X8, 128, 0), 800000);
	CHECK_INT(ha_speed_mbps(X12, 1, 0), 30000);
	/* XDR, beside a rate that old software understands */
	CHECK_INT(ha_speed_mbps(X4, 128, 256), 800000);
	CHECK_INT(ha_speed_mbps(X4, 0, 256), 800000);
	CHECK_INT(ha_speed_mbps(0, 128, 0), 0);
	CHECK_INT(ha_speed_mbps(X4, 0, 0), 0);
	CHECK_INT(ha_speed_mbps(128, 128, 0), 0);
	CHECK_INT(ha_speed_mbps(X4, 0, 1U << 31), 0);

	fake_verbs_init(&fake, &device, 1);
	CHECK_INT(fake.ops.device_list(&fake.ops, &list, &n), 0);
	CHECK_INT(fake.ops.open(&fake.ops, list[0], &context), 0);
	CHECK_INT(fake.ops.query_port(&fake.ops, context, 1, &attr), 0);
	CHECK_INT(ha_speed_port(&fake.ops, context, 1, &attr), 400000);
	device.ports[0].effective_mbps = 200000; /* the library knows better, e.g. of a bond */
	CHECK_INT(ha_speed_port(&fake.ops, context, 1, &attr), 200000);
	device.ports[0].effective_mbps = UINT64_MAX;
	CHECK_INT(ha_speed_port(&fake.ops, context, 1, &attr), 400000);
	fake.ops.close(&fake.ops, context);
	fake.ops.device_list_free(&fake.ops, list);
	fake_verbs_done(&fake);
	return 0;
}
