/* SPDX-License-Identifier: BSD-3-Clause */
/* Discovery over the software NIC's library, which has no sysfs behind it. */
#include "base/check.h"
#include "base/config.h"
#include "rdma/topo/device.h"
#include "rdma/verbs/dlopen.h"
#include "tests/base/lines.h"

static struct ha_topo topo;

int main(int argc, char **argv)
{
	struct ha_verbs_ops *v;
	struct ha_config config;

	CHECK_INT(argc, 2);
	ha_config_defaults(&config);
	CHECK_INT(ha_verbs_open_library(argv[1], &v), 0);
	for (int round = 0; round < 2; round++) { /* a second time as the first */
		lines_catch();
		CHECK_INT(ha_topo_discover(v, &config, &topo), 0);
		CHECK_INT(topo.ndevices, 2);
		CHECK_INT(lines_warnings(), 0);
		for (int i = 0; i < 2; i++) {
			const struct ha_topo_device *d = &topo.devices[i];

			CHECK_TEXT(d->name, i ? "soft1" : "soft0");
			CHECK_INT(d->port, 1);
			CHECK(d->place.is_soft && d->is_ethernet && !d->relaxed_ordering &&
			      !d->dma_buf);
			CHECK_TEXT(d->place.pci_path, "");
			CHECK_INT(d->address.roce_version, 2);
			CHECK_INT(d->address.gid.raw[12], 127);
			CHECK_INT(d->address.gid.raw[13], i + 1);
			CHECK(d->speed_mbps > 0);
			CHECK(d->guid);
			CHECK(d->hot.post_send);
		}
		CHECK(topo.devices[0].guid != topo.devices[1].guid);
		ha_topo_release(&topo);
	}
	snprintf(config.ib_hca, sizeof(config.ib_hca), "=soft1");
	CHECK_INT(ha_topo_discover(v, &config, &topo), 0);
	CHECK_INT(topo.ndevices, 1);
	CHECK_TEXT(topo.devices[0].name, "soft1");
	ha_topo_release(&topo);
	ha_verbs_close_library(v);
	return 0;
}
