/* SPDX-License-Identifier: BSD-3-Clause */
#ifdef __x86_64__
#define INA_AGGREGATE ina_aggregate_avx2
#define INA_AGGREGATE_PREDICTED ina_aggregate_predicted_avx2
#define LANE 32
/* NOLINTNEXTLINE(bugprone-suspicious-include): once more, for another processor */
#include "ina/switch/switchd/aggregate.c"
#endif
