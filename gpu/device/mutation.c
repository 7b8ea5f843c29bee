/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/device/mutation.h"

enum ha_gpu_mutation ha_gpu_mutation;
