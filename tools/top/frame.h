/* SPDX-License-Identifier: BSD-3-Clause */
/* frame.h - one look at all processes, and what has changed since the look before */
#ifndef HAWSER_TOP_FRAME_H
#define HAWSER_TOP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "tools/port_bytes.h"
#include "tools/status_read.h"

#define TOP_PORTS 256

struct frame {
	struct ha_status_found *found; /* pages; those that were refused have none */
	size_t n;
	struct ha_port_bytes port[TOP_PORTS];
	unsigned ports;
	uint64_t at; /* CLOCK_MONOTONIC, ns; 0: no look yet */
};

/* 0, or a negative errno: ha_status_scan()'s. */
int frame_look(struct frame *f, const char *dir, const char *sysfs);
void frame_release(struct frame *f);

struct top_rates {
	double sent, received; /* bytes per second */
};

/* Of a port since the frame before; negative: it was not there. */
struct top_rates frame_port_rates(const struct frame *f, const struct frame *before,
				  const struct ha_port_bytes *port);
/* Messages per second of connection `i` of process `p`; negative: it was not there. */
double frame_message_rate(const struct frame *f, const struct frame *before, size_t p, int i);

#endif
