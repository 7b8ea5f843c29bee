/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOL_NCCL_ENVIRONMENT_H
#define HAWSER_TOOL_NCCL_ENVIRONMENT_H

struct ha_place;
struct ha_probe;
struct nccl_options;

/*
 * environment - what NCCL, the plugin and softcuda find in the environment of a run
 *
 * On a cluster nothing is set but what an option asks for by name. On softcuda, where no
 * administrator has prepared anything, what the user has not set is: ranks are hosts of their own,
 * connect over the loopback interface and the software NIC, load this build's plugin, and NCCL's
 * log goes to a file that the report is taken from.
 */
struct nccl_environment {
	/* "NAME=value NAME=value": what was set here, for the report; "": nothing */
	char set[4096];
	char folder[512]; /* NCCL's logs, to be removed at the end; "": none was made */
};

/*
 * For all ranks, before they are forked. Where NCCL's IB transport needs the software NIC in
 * libibverbs' place, this starts the program again under softroce-run, with argv, and does not
 * return. 0 or a negative errno with the fault recorded.
 */
int nccl_environment_prepare(struct nccl_environment *environment,
			     const struct nccl_options *options, const struct ha_probe *probe,
			     char **argv);

/* In a rank, before its libraries are opened. 0 or -EINVAL with the fault recorded. */
int nccl_environment_rank(struct nccl_environment *environment, const struct nccl_options *options,
			  const struct ha_probe *probe, const struct ha_place *place);

/* How many processes share this one's (emulated) host, and how many of them come before it. */
void nccl_environment_share(const struct nccl_options *options, const struct ha_place *place,
			    int *processes, int *before);

/* At the end of a run; `failed` leaves NCCL's log and says where it is. */
void nccl_environment_release(struct nccl_environment *environment, int failed);

#endif
