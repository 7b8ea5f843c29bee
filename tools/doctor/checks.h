/* SPDX-License-Identifier: BSD-3-Clause */
/* checks.h - what `ha doctor` looks at: each reads the host's facts and adds what it finds, also
 * that all is in order */
#ifndef HAWSER_DOCTOR_CHECKS_H
#define HAWSER_DOCTOR_CHECKS_H

#include "tools/doctor/findings.h"
#include "tools/doctor/host.h"

/* All of them, in the order in which they are shown. */
void doctor_check_all(const struct doctor_host *host, struct doctor_report *report);

void doctor_check_plugin(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_nccl(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_verbs(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_environment(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_timeouts(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_limits(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_oob(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_ports(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_standby(const struct doctor_host *host, struct doctor_report *report);
void doctor_check_pci(const struct doctor_host *host, struct doctor_report *report);

#endif
