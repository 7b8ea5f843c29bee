/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_OPTIONS_H
#define HAWSER_TOOL_NCCL_OPTIONS_H

#include "tools/job/options.h"

struct nccl_operation;

#define NCCL_ROUNDS_MOST 64

/* A transport by its option's name: what NCCL calls it, and what it needs on softcuda. */
struct nccl_net {
	const char *name, *nccl_name;
	bool plugin; /* hawser's plugin must be loaded */
	bool verbs;  /* NCCL's own IB transport: the software NIC stands in for libibverbs */
};

/* How the buffers are made known to NCCL (nccl-tests' -R). */
enum nccl_registration { NCCL_NOT_REGISTERED, NCCL_REGISTERED, NCCL_SYMMETRIC };

/* What `ha nccl` was asked to do. */
struct nccl_options {
	struct ha_run_options run; /* first: its rows are a table of ours */
	const struct nccl_operation *operation;
	const char *nccl;                    /* path, version, "softcuda", or NULL */
	const struct nccl_net *net, *versus; /* NULL: NCCL's choice; none */
	int gpus;                            /* of each process */
	int hosts;                           /* emulated; 0: each process is a host of its own */
	int graphs; /* launches of a captured graph of the measured iterations; 0: no graph */
	int rounds; /* how often two transports take turns */
	enum nccl_registration registration;
	bool blocking;      /* each iteration is waited for */
	bool one_scale;     /* of the payload (tools/job/payload.h) */
	bool port_failover; /* of NCCL's IB transport */
};

/* By the option's name, and by NCCL's; NULL: there is none. */
const struct nccl_net *nccl_net_find(const char *name);
const struct nccl_net *nccl_net_find_by_nccl(const char *nccl_name);

/* 0, or as ha_options_parse(). */
int nccl_options_parse(struct nccl_options *options, int argc, char **argv);

#endif
