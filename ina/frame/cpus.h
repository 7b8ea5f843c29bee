/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef INA_CPUS_H
#define INA_CPUS_H

/* "2-5,8" into processors in that order; how many, or -EINVAL: it is none, or more than max. */
int ina_cpus_parse(const char *text, int *cpu, int max);

#endif
