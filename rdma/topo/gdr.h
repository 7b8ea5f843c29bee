/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr.h - can a NIC reach GPU memory, and how */
#ifndef HA_TOPO_GDR_H
#define HA_TOPO_GDR_H

#include <stdbool.h>

#include "rdma/verbs/ops.h"

/* A kernel module translates GPU addresses for the RDMA stack: nvidia_peermem, or its forerunner
 * nv_peer_mem. */
bool ha_gdr_peer_memory(const char *sysfs_root);

/*
 * The GPUs of this process are softcuda's: their memory is host memory, which a software NIC
 * registers by address like any other. softcuda's runtime is found by its name among the libraries
 * of the process, however they were loaded.
 */
bool ha_gdr_soft_gpu(void);

/* The driver of this context takes dma-bufs. Asks it to register a descriptor that does not
 * exist. */
bool ha_gdr_dma_buf(const struct ha_verbs_ops *verbs, struct ibv_context *context);

#endif
