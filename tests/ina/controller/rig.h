/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - a living ha-controller in a directory of its own, for the C client */
#ifndef HA_TESTS_CONTROLLER_RIG_H
#define HA_TESTS_CONTROLLER_RIG_H

#include "ina/controller/client.h"

#include <sys/types.h>

struct rig {
	const char *program;
	char top[64], address[96], listen[112], settings[96], database[96], log[96];
	pid_t pid;
};

/* settings: what the file says. Nothing runs yet. */
void rig_make(struct rig *r, const char *program, const char *settings);
/* extra: one more option or NULL. Does not wait. */
void rig_start(struct rig *r, const char *extra);
/* Until it answers. */
void rig_await(struct rig *r);
/* What waitpid says. */
int rig_stop(struct rig *r, int signal);
void rig_remove(struct rig *r);

struct ha_ina_client *rig_client(const struct rig *r, unsigned deadline_ms, bool retry);
void rig_sleep(unsigned ms);

#endif
