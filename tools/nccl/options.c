/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "tools/nccl/operation.h"
#include "tools/nccl/options.h"

#define GPUS_MOST 16

static const struct nccl_net nets[] = {
	{ "hawser", "HA", .plugin = true },
	{ "ib", "IB", .verbs = true },
	{ "socket", "Socket" },
};

const struct nccl_net *nccl_net_find(const char *text)
{
	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++)
		if (!strcmp(text, nets[i].name))
			return &nets[i];
	return NULL;
}

const struct nccl_net *nccl_net_find_by_nccl(const char *nccl_name)
{
	for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++)
		if (!strcasecmp(nccl_name, nets[i].nccl_name))
			return &nets[i];
	return NULL;
}

/* ---- values ---- */

static bool take_net(void *target, const struct ha_option_text *given)
{
	struct nccl_options *o = target;

	o->net = nccl_net_find(given->text);
	return o->net != NULL;
}

static bool take_versus(void *target, const struct ha_option_text *given)
{
	struct nccl_options *o = target;

	o->versus = nccl_net_find(given->text);
	return o->versus != NULL;
}

static bool take_operation(void *target, const struct ha_option_text *given)
{
	struct nccl_options *o = target;

	o->operation = nccl_operation_find(given->text);
	if (!o->operation)
		fprintf(stderr, "ha nccl: unknown operation '%s'; `ha nccl --help` lists them\n",
			given->text);
	return o->operation != NULL;
}

static void print_operations(FILE *out)
{
	fprintf(out, "\noperations:\n");
	for (int i = 0; i < nccl_operations_count; i++)
		fprintf(out, "  %-14s %s\n", nccl_operations[i].name, nccl_operations[i].help);
}

/* ---- the table ---- */

#define HA_TARGET struct nccl_options

static const struct ha_option rows[] = {
	{ "op", 'o', "OP,...", "sum prod max min avg mulsum or all (sum)",
	  HA_CALL(ha_run_take_redops,
		  "sum, prod, max, min, avg or mulsum with commas between, or all") },
	{ "ngpus", 'g', "N", "GPUs of each process, driven by one thread in groups (1)",
	  HA_NUMBER(gpus, 1, GPUS_MOST) },
	{ "cudagraph", 'G', "N",
	  "capture the measured iterations in a CUDA graph and launch it N times (0: no graph)",
	  HA_NUMBER(graphs, 0, 1000000) },
	{ "local_register", 'R', "0-2",
	  "register the buffers: 1 ncclCommRegister, 2 symmetric windows (0)",
	  HA_NUMBER(registration, 0, 2) },
	{ "blocking", 'z', "0|1", "wait for each measured iteration (0)",
	  HA_NUMBER(blocking, 0, 1) },
	{ "hosts", 0, "N",
	  "on softcuda: the ranks are on N emulated hosts (every process on its own)",
	  HA_NUMBER(hosts, 1, 4096) },
	{ "nccl", 0, "WHAT",
	  "libnccl's path, a version linked with softcuda (2.29), or softcuda (the loader's, else "
	  "softcuda's newest)",
	  HA_TEXT(nccl) },
	{ "net", 0, "NAME",
	  "hawser, ib (NCCL's own), socket (on softcuda hawser, else what NCCL takes)",
	  HA_CALL(take_net, "hawser, ib or socket") },
	{ "vs", 0, "NAME",
	  "take turns with this transport, in the same processes; both and their ratios",
	  HA_CALL(take_versus, "hawser, ib or socket") },
	{ "rounds", 0, "N", "how often the two take turns in the measured iterations (5)",
	  HA_NUMBER(rounds, 1, NCCL_ROUNDS_MOST) },
	{ "one-scale", 0, NULL,
	  "data whose sums are exact in a switch that adds with block exponents, too (CollNet)",
	  HA_FLAG(one_scale) },
	{ "port-failover", 0, NULL,
	  "with --net ib: NCCL's failover between the ports of a fused NIC",
	  HA_FLAG(port_failover) },
	{ 0 },
};

static const struct ha_option operands[] = {
	{ "OPERATION", 0, NULL, NULL, HA_CALL(take_operation, NULL) },
	{ 0 },
};

static const struct ha_program program = {
	.name = "ha nccl",
	.synopsis = "OPERATION [OPTIONS]",
	.about = "Runs NCCL's collectives by its public interface and compares every element of "
		 "the result with an "
		 "independent computation. With -g each process has N GPUs, so there are N times "
		 "as many NCCL ranks as "
		 "processes.",
	.options = { ha_run_option_rows, rows },
	.operands = operands,
	.needed = 1,
	.notes = "Exit status: 0 all right, 1 wrong data or failure, 2 called wrongly.",
	.print_notes = print_operations,
};

/* ---- what only makes sense together ---- */

static int check_graphs(const struct nccl_options *o)
{
	if (!o->graphs)
		return 0;
	if (!o->run.iters)
		return ha_program_refuse(
			&program, "-G captures the measured iterations, of which -n 0 has none");
	if (o->run.duration_ns || o->run.check_all || o->blocking)
		return ha_program_refuse(&program,
					 "-G does not go with --duration, --check-all or -z 1");
	return 0;
}

static int check_versus(const struct nccl_options *o)
{
	if (o->versus && !o->net)
		return ha_program_refuse(&program,
					 "--vs needs --net, the transport to compare it with");
	if (o->versus && o->versus == o->net)
		return ha_program_refuse(&program, "--vs needs another transport than --net");
	if (o->versus && o->run.duration_ns)
		return ha_program_refuse(&program, "--duration does not go with --vs");
	if (o->versus && o->run.iters < o->rounds)
		return ha_program_refuse(&program,
					 "%d measured iterations are not enough for %d rounds",
					 o->run.iters, o->rounds);
	return 0;
}

static int check_options(struct nccl_options *o)
{
	const struct ha_launch_options *l = &o->run.launch;
	int err = ha_run_options_check(&o->run, &program, o->operation->layout->reduces);

	if (err)
		return err;
	if (o->run.root && l->ranks && o->run.root >= l->ranks * o->gpus)
		return ha_program_refuse(&program, "--root is not one of the ranks");
	if (o->hosts && l->ranks && l->ranks % o->hosts)
		return ha_program_refuse(&program, "%d ranks cannot be shared evenly by %d hosts",
					 l->ranks, o->hosts);
	err = check_versus(o);
	if (err)
		return err;
	if (o->port_failover && (!o->net || !o->net->verbs))
		return ha_program_refuse(
			&program,
			"--port-failover is of NCCL's own IB transport: it needs --net ib");
	return check_graphs(o);
}

int nccl_options_parse(struct nccl_options *o, int argc, char **argv)
{
	int result;

	*o = (struct nccl_options) { .gpus = 1, .rounds = 5 };
	ha_run_options_default(&o->run, program.name);
	result = ha_options_parse(&program, argc, argv, o);
	return result ? result : check_options(o);
}
