/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * switches.h - the file in which `ha switches --write` says what each RDMA port hangs on
 *
 * A job lacks the privileges to ask a switch; who has them writes this file (HA_NCCL_SWITCHES).
 * Text: the first line is HA_SWITCHES_HEAD, each further line has five words: the port, the
 * switch's identity, the switch's port, the source, the switch's name. A word that is not known
 * is "-"; of a port that has no neighbor, or several, the identity is. Lines that begin with # and
 * empty ones say nothing.
 */
#ifndef HA_TOPO_SWITCHES_H
#define HA_TOPO_SWITCHES_H

#include <stdio.h>

#include "rdma/topo/device.h"
#include "rdma/topo/leaf.h"

#define HA_SWITCHES_HEAD "# hawser switches 1"
#define HA_SWITCHES_FILE "/run/hawser/switches"

struct ha_switches_line {
	char device[HA_DEVICE_NAME_MAX]; /* "mlx5_0" */
	int port;
	struct ha_topo_switch at;
};

/* 1: `line` has a port's; 0: it says nothing; -EINVAL: it makes no sense. */
int ha_switches_parse(const char *text, struct ha_switches_line *line);
void ha_switches_print(const struct ha_switches_line *line, FILE *out);
/* A word as the file can have it: what is not visible ASCII becomes '_', what does not fit is
 * cut off. */
void ha_switches_word(char *word, size_t size, const char *text, size_t len);

struct ha_config;

/*
 * Fill in `at` of the list's ports. A file that is missing by its default name is nothing to
 * report; else there is a warning, and no switch is known. A line that makes no sense is left out,
 * the first of them with a warning.
 */
void ha_switches_read(const struct ha_config *config, struct ha_topo *topo);

#endif
