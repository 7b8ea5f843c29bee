/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/mutation.h"

enum ina_mutation ina_mutation;
