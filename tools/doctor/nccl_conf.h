/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_DOCTOR_NCCL_CONF_H
#define HAWSER_DOCTOR_NCCL_CONF_H

/*
 * nccl_conf - the variables that NCCL takes from files, before anything asks for one
 *
 * NCCL_CONF_FILE, or ~/.nccl.conf without it, then /etc/nccl.conf; a line is NAME=VALUE, and what
 * the environment has already stays (src/misc/param.cc of NCCL).
 */
void doctor_nccl_conf_load(void);

#endif
