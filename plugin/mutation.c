/* SPDX-License-Identifier: BSD-3-Clause */
#include "plugin/mutation.h"

enum ha_mutation ha_mutation;
