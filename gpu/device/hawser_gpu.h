/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hawser_gpu.h - the device library, whole. docs/gpu.md says what its calls promise; conn.h who
 * writes what.
 */
#ifndef HAWSER_GPU_H
#define HAWSER_GPU_H

#include "gpu/device/amo.h"

#endif
