/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * datapath.h - the XDP program in the kernel, and its groups
 *
 * Calls return 0 or a negative errno, and then ina_xdp_why() is one line for the operator. One
 * thread at a time.
 */
#ifndef INA_XDP_DATAPATH_H
#define INA_XDP_DATAPATH_H

#include "ina/switch/xdp/abi.h"

#include <stddef.h>

struct ina_xdp;

/*
 * Needs root (CAP_BPF and CAP_NET_ADMIN) and Linux 5.14. testable: the program of answers runs in
 * BPF_PROG_TEST_RUN and goes in no devmap. NULL and why.
 */
struct ina_xdp *ina_xdp_open(const struct ina_xdp_settings *settings, bool testable, char *why,
			     size_t size);
/* Packets go past the switch from here on. */
void ina_xdp_close(struct ina_xdp *x);
const char *ina_xdp_why(const struct ina_xdp *x);

/*
 * ifindex: the port of each rank. As ina_switch_install(): -EINVAL, -ENOSPC, -EEXIST, -ESTALE; what
 * the kernel refuses besides.
 */
int ina_xdp_install(struct ina_xdp *x, const struct ina_group_config *config, const int *ifindex);
int ina_xdp_renew(struct ina_xdp *x, uint8_t id, uint32_t epoch, uint64_t lease_until);
int ina_xdp_remove(struct ina_xdp *x, uint8_t id, uint32_t epoch);
/* A rank is at another port, or has another MAC address. */
int ina_xdp_move(struct ina_xdp *x, uint8_t id, unsigned rank, const uint8_t mac[6], int ifindex);
/* The group as it is; NULL: there is none. */
const struct ina_group *ina_xdp_group(const struct ina_xdp *x, uint8_t id);
/* Have packets of it been taken since the last call? */
bool ina_xdp_seen(struct ina_xdp *x, uint8_t id);

/* INA_XDP_COUNTERS of them, since the start. */
int ina_xdp_count(struct ina_xdp *x, uint64_t *n);
const char *ina_xdp_counter_name(unsigned which, const char **help);

/*
 * Programs, for who attaches or runs them; -1: none of that name. "ina_switch", "ina_answer",
 * "bench_drop", "bench_switch".
 */
int ina_xdp_program(const struct ina_xdp *x, const char *name);

#endif
