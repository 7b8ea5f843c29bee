/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/ina/mutation.h"

enum ina_mutation ina_mutation;
