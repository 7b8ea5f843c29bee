/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leaf.h - the leaf switch that a port hangs on, as a number that hosts can compare
 *
 * Rail and plane of NCCL_IB_HCA where they are given, else the switch that the file of
 * `ha switches` has. Equal numbers are one switch. A rail and a switch are two kinds of number:
 * whether they are the same is not known.
 *
 * 24 bits, as they go over the wire: rail + 1 in bits 12-22, plane + 1 in bits 0-11, bit 23 is 0;
 * or bit 23, and in bits 0-19 a hash of the switch's identity. Two switches with one hash (one pair
 * in a million) count as one: too little is promised then, never too much.
 */
#ifndef HA_TOPO_LEAF_H
#define HA_TOPO_LEAF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HA_LEAF_MAX 2046u /* rails and planes from here on have no number */
#define HA_LEAF_SWITCH 0x800000u
#define HA_LEAF_HASH 0xfffffu

struct ha_topo;
struct ha_topo_device;

/* What the file of `ha switches` has of a port (switches.h). */
struct ha_topo_switch {
	char id[80];   /* "mac:50:6b:4b:12:34:56", the same at all hosts; "": not known */
	char port[64]; /* the switch's */
	char name[64];
	char source[16]; /* "lldpd" */
};

/* 0: not known. */
uint32_t ha_leaf(const struct ha_topo_device *dev);
/* Of this identity. */
uint32_t ha_leaf_of_switch(const char *id);

/* Both are known and of one kind: they are the same switch or not. */
static inline bool ha_leaf_comparable(uint32_t a, uint32_t b)
{
	return a && b && !((a ^ b) & HA_LEAF_SWITCH);
}

/* What follows "the leaf switch": "of rail 2", "of rail 2, plane 0", "leaf1 (mac:...)"; where no
 * port of this host hangs on it, "of the peer's NICs". Returns buf. */
const char *ha_leaf_text(const struct ha_topo *topo, uint32_t leaf, char *buf, size_t len);
/* "leaf1 (mac:...)", or the identity alone. Returns buf. */
const char *ha_leaf_switch_text(const struct ha_topo_switch *at, char *buf, size_t len);

#endif
