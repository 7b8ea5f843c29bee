/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef __x86_64__
#define INA_ENTER ina_enter_avx2
/* NOLINTNEXTLINE(bugprone-suspicious-include): once more, for another processor */
#include "ina/switch/enter.c"
#endif
