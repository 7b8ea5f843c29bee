/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.h - the slot core and the XDP program side by side: every packet goes to both, and both must
 * do the same, to the last bit */
#ifndef HA_TESTS_INA_XDP_PAIR_H
#define HA_TESTS_INA_XDP_PAIR_H

#include "ina/switch/xdp/datapath.h"

#define PAIR_SLOTS 1024u

struct pair {
	struct ina_switch core;
	struct ina_slot slot[PAIR_SLOTS];
	struct ina_xdp *xdp;
	int program, answer;
	uint64_t now;
	uint64_t count[INA_XDP_COUNTERS]; /* as the core counts */
	uint64_t packets;
	bool stays; /* on its CPU */
};

/* Fails, with the reason, where the kernel does not take the program. */
void pair_open(struct pair *p, uint32_t addr, const uint8_t mac[6]);
void pair_close(struct pair *p);
/* 0 or an errno, both the same. */
int pair_install(struct pair *p, const struct ina_group_config *config);
void pair_lapse(struct pair *p, const struct ina_group_config *config);
void pair_remove(struct pair *p, const struct ina_group_config *config);
/* At least 14 bytes. What the core says about it; *fault first. */
struct ina_verdict pair_send(struct pair *p, const uint8_t *bytes, size_t len,
			     enum ina_fault *fault);
/* The program has counted as the core has. */
void pair_check_counters(struct pair *p);

#endif
