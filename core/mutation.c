/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/mutation.h"

enum ha_mutation ha_mutation;
