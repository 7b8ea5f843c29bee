/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * survey.h - all hosts go through the plan together; what each has seen becomes one matrix at rank
 * 0
 */
#ifndef HAWSER_FABRIC_SURVEY_H
#define HAWSER_FABRIC_SURVEY_H

#include "tools/doctor/fabric/run.h"

struct ha_place;
struct ha_rendezvous;

/* What a rank sends of its host. */
struct fabric_hello {
	char host[64];
	uint64_t id; /* the same for ranks that see the same ports */
	int32_t ports;
	char why[160]; /* there are none */
	struct {
		char label[FABRIC_LABEL_MAX];
		int32_t speed_mbps, up;
	} port[FABRIC_PORTS_MAX];
};

struct fabric_survey {
	const struct fabric_options *options;
	const struct ha_place *place;
	struct ha_rendezvous *rendezvous;
	struct ha_ctx *plain;   /* without failover: what is reached is reached on this path */
	struct ha_ctx *guarded; /* with it */
	char *memory;
	struct fabric_hello mine;
	/* of all ranks */
	struct fabric_hello *hellos;
	int *host_of;         /* the host's number; -1: another rank stands for it */
	int *rank_of;         /* of each host */
	int *first_port;      /* of each host, in the list of all */
	int ports_most;       /* of a host */
	struct fabric fabric; /* cells: what this rank has seen; at rank 0 all, in the end */
};

/* A port is numbered where it was up when the context was made: the number of the one with this
 * label there; -1: none. */
int fabric_device_find(const struct ha_ctx *ctx, const char *label);

/* 0, or a negative errno with the fault recorded. */
int fabric_survey_meet(struct fabric_survey *survey);
int fabric_survey_measure(struct fabric_survey *survey);
int fabric_survey_gather(struct fabric_survey *survey);
void fabric_survey_release(struct fabric_survey *survey);

#endif
