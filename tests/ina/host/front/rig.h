/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - an adding_backend and rank processes, for tests of the front end */
#ifndef TESTS_INA_FRONT_RIG_H
#define TESTS_INA_FRONT_RIG_H

#include "base/check.h"
#include "include/hawser/ina.h"

#include <errno.h>
#include <stdint.h>
#include <sys/types.h>

#define SECOND 1000000000ull
#define TIME_LIMIT (100 * SECOND) /* for anything to come; beside other work */

/* Starts adding_backend with these options (a list that ends with NULL); NETCCL_BACKEND names its
 * socket. */
void backend_start(const char *const *options);
void backend_kill(void);
/* It ends by itself when nobody needs it: all clients must be gone. */
void backend_stop(void);

struct rank {
	unsigned rank, ranks;
	struct ha_ina *ina;
	struct ha_ina_group *group;
	void *arg;
};

/* So many processes, each attached and one rank of one group; fn runs in each, and returns. All
 * must end well. */
void ranks_run(unsigned ranks, void (*fn)(struct rank *r), void *arg);
/* Without waiting: pid[ranks]. */
void ranks_start(unsigned ranks, void (*fn)(struct rank *r), void *arg, pid_t *pid);
void ranks_wait(unsigned ranks, const pid_t *pid);
/* In a rank: all wait for all. */
void ranks_meet(struct rank *r);

/* Opens, or says why not and ends. */
struct ha_ina *open_or_die(void);
/* A process of a group of its own: with loopback. */
struct ha_ina_group *group_or_die(struct ha_ina *ina, unsigned ranks, unsigned rank);
/* Posts, or says why not and ends. */
struct ha_ina_op *post_or_die(struct ha_ina *ina, struct ha_ina_group *group,
			      const struct ha_ina_request *request);
/* Posts, waits for at most 30 s, frees: the result. */
int run_request(struct ha_ina *ina, struct ha_ina_group *group,
		const struct ha_ina_request *request);

#endif
