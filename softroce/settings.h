/* SPDX-License-Identifier: BSD-3-Clause */
/* settings.h - the environment variables of softroce, read once */
#ifndef SOFTROCE_SETTINGS_H
#define SOFTROCE_SETTINGS_H

#include <stdbool.h>

struct sr_settings {
	const char *devices; /* SOFTROCE_DEVICES */
	/* SOFTROCE_GSO, 1: use the kernel's UDP segmentation and receive offload */
	bool gso;
	/* SOFTROCE_CONTROL: folder of the control pages; NULL = the user's one in /dev/shm */
	const char *control_dir;
	/* SOFTROCE_RATE, SOFTROCE_UPSTREAM: MB/s of each device, of all together; "" = no limit */
	const char *rate, *upstream;
	int card_ports; /* SOFTROCE_CARD_PORTS: devices in a row that are one card's, 1 to 8 */
	/* SOFTROCE_BUSY_POLL, 0: who polls an empty queue never gives its processor away */
	bool busy_poll;
	/* SOFTROCE_INFLIGHT: unacknowledged packets per queue pair; 0 = by the receive buffer */
	int max_inflight;
};

/* A value that makes no sense is reported once on stderr and replaced by the default. */
const struct sr_settings *sr_settings(void);
/*
 * Read the environment again: for tests, and for a child after fork(). Not while a device is open.
 */
void sr_settings_reload(void);

/* The names of all variables of softroce. */
extern const char *const sr_settings_names[];
extern const int sr_settings_names_count;

/* One line for the user on stderr: "softroce: ...". */
void sr_log_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
