/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.h - the controller as a whole: its parts and the order in which they start */
#ifndef HA_INA_DAEMON_H
#define HA_INA_DAEMON_H

#include "base/http.h"
#include "base/signals.h"
#include "ina/controller/server.h"
#include "ina/controller/settings.h"

struct ha_controller_options {
	struct ha_server_options server;
	const char *settings; /* file, NULL = none */
	const char *database;
	const char *metrics; /* ADDRESS:PORT, or "none" */
};

struct ha_controller {
	struct ha_settings settings;
	struct ha_store *store;
	struct ha_service service;
	bool serving;
	struct ha_server *server;
	struct ha_loop loop; /* metrics and signals; looked at between two rounds of gRPC */
	struct ha_http http;
	struct ha_signals signals;
	int stop;
};

/* 0, or an exit status after one line on stderr. */
int ha_controller_open(struct ha_controller *c, const struct ha_controller_options *options);
/* Until a signal says stop; the exit status. */
int ha_controller_run(struct ha_controller *c);
void ha_controller_close(struct ha_controller *c);

#endif
