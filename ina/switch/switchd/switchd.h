/* SPDX-License-Identifier: BSD-3-Clause */
/* switchd.h - ha-switch as a whole: its parts and the order in which they start */
#ifndef INA_SWITCHD_SWITCHD_H
#define INA_SWITCHD_SWITCHD_H

#include "base/http.h"
#include "base/signals.h"
#include "ina/switch/switchd/groups.h"
#include "ina/switch/switchd/options.h"

struct ina_switchd {
	const struct ina_switch_options *options;
	struct ina_cores *all;
	struct ina_groups groups;
	struct ina_follow *follow; /* NULL: no controller */
	struct ha_loop loop;       /* signals and metrics, in the first thread */
	struct ha_http http;
	struct ha_signals signals;
	uint64_t reloads;
	unsigned running; /* cores */
	bool eal, up[INA_PORTS_MAX];
	int stop;
};

/* 0, or an exit status after one line on stderr. */
int ina_switchd_open(struct ina_switchd *s, const struct ina_switch_options *options);
/* Until a signal says stop; the exit status. */
int ina_switchd_run(struct ina_switchd *s);
void ina_switchd_close(struct ina_switchd *s);

#endif
