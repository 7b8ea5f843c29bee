/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dmabuf.h - device memory as a descriptor for a NIC
 *
 * No kernel driver makes DMA-BUFs of this memory. What takes their place is a descriptor of the
 * anonymous file that the memory is, opened anew for this export, whose file position is the place
 * of the first byte in the file. softroce's ibv_reg_dmabuf_mr() adds the position to the offset
 * that it is given (softroce/verbs/memory.c); a real DMA-BUF has position 0.
 */
#ifndef SOFTCUDA_DMABUF_H
#define SOFTCUDA_DMABUF_H

#include "softcuda/runtime/cuda_types.h"

/* All of the range must lie in one allocation or mapping. The caller owns the descriptor. */
cudaError_t export_dmabuf(const void *address, size_t size, int *descriptor);

#endif
