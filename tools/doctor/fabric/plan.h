/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - who is measured with whom when: every pair of hosts once, each host in one pair at a
 * time */
#ifndef HAWSER_FABRIC_PLAN_H
#define HAWSER_FABRIC_PLAN_H

/* Rounds that `hosts` hosts need. */
int fabric_plan_rounds(int hosts);
/* The partner of a host in a round; -1: it rests. */
int fabric_plan_partner(int hosts, int round, int host);

#endif
