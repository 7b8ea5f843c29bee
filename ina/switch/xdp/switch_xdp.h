/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switch_xdp.h - the XDP switch as a program: ports, groups from a controller or a file, where
 * their ranks are
 */
#ifndef INA_XDP_SWITCH_XDP_H
#define INA_XDP_SWITCH_XDP_H

#include "ina/switch/xdp/datapath.h"
#include "ina/switch/xdp/port.h"

#define SWITCH_XDP_PORTS 64

struct switch_xdp_options {
	struct ina_xdp_settings settings;
	enum ina_xdp_mode mode;
	const char *port[SWITCH_XDP_PORTS];
	unsigned nports;
	const char *controller, *cert, *key, *ca, *name; /* controller NULL: groups from the file */
	const char *serves[16];
	unsigned nserves;
	uint8_t workers;
	const char *groups;
	const char *metrics; /* ADDRESS:PORT, or none */
};

/* Until SIGINT or SIGTERM. The exit status. */
int switch_xdp_run(const struct switch_xdp_options *options);

#endif
