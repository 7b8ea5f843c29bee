/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/plugin/mutation.h"

enum ha_mutation ha_mutation = HA_MUTATE_OUTSIDE;
