/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * attributes.h - what a device says about itself
 */
#ifndef SOFTCUDA_ATTRIBUTES_H
#define SOFTCUDA_ATTRIBUTES_H

#include <stdbool.h>

#include "softcuda/runtime/cuda_device.h"

void fill_properties(struct cudaDeviceProp *properties, unsigned ordinal);
/*
 * Value of an attribute by its number; one that this device does not have is 0. False: no such
 * attribute.
 */
bool read_attribute(int attribute, unsigned ordinal, int *value);

#endif
