/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "tools/job/parse.h"
#include "tools/nccl/operation.h"
#include "tools/nccl/options.h"

#define PROGRAM	     "ha nccl"
#define GPUS_MOST    16
#define OPTIONS_MOST 16

enum {
	OPT_HOSTS = HA_OPTION_OWN,
	OPT_NCCL,
	OPT_NET,
	OPT_VERSUS,
	OPT_ROUNDS,
	OPT_PORT_FAILOVER,
	OPT_ONE_SCALE,
};

static const struct ha_option table[] = {
	{ "ngpus", 'g', "N", "GPUs of each process, driven by one thread in groups (1)" },
	{ "cudagraph", 'G', "N", "capture the measured iterations in a CUDA graph and launch it N times (0: no graph)" },
	{ "local_register", 'R', "0-2", "register the buffers: 1 ncclCommRegister, 2 symmetric windows (0)" },
	{ "blocking", 'z', "0|1", "wait for each measured iteration (0)" },
	{ "hosts", OPT_HOSTS, "N", "on softcuda: the ranks are on N emulated hosts (every process on its own)" },
	{ "nccl", OPT_NCCL, "WHAT",
	  "libnccl's path, a version linked with softcuda (2.29), or softcuda (the loader's, else softcuda's newest)" },
	{ "net", OPT_NET, "NAME", "hawser, ib (NCCL's own), socket (on softcuda hawser, else what NCCL takes)" },
	{ "vs", OPT_VERSUS, "NAME", "take turns with this transport, in the same processes; both and their ratios" },
	{ "rounds", OPT_ROUNDS, "N", "how often the two take turns in the measured iterations (5)" },
	{ "one-scale", OPT_ONE_SCALE, NULL,
	  "data whose sums are exact in a switch that adds with block exponents, too (CollNet)" },
	{ "port-failover", OPT_PORT_FAILOVER, NULL, "with --net ib: NCCL's failover between the ports of a fused NIC" },
};

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

static bool registration_parse(struct nccl_options *o, const char *text)
{
	int n;

	if (!ha_int_parse(text, 0, 2, &n))
		return false;
	o->registration = (enum nccl_registration)n;
	return true;
}

static bool blocking_parse(struct nccl_options *o, const char *text)
{
	int n;

	if (!ha_int_parse(text, 0, 1, &n))
		return false;
	o->blocking = n;
	return true;
}

static bool option_take(void *context, int value, const char *text)
{
	struct nccl_options *o = context;

	switch (value) {
	case 'g':
		return ha_int_parse(text, 1, GPUS_MOST, &o->gpus);
	case 'G':
		return ha_int_parse(text, 0, 1000000, &o->graphs);
	case 'R':
		return registration_parse(o, text);
	case 'z':
		return blocking_parse(o, text);
	case OPT_HOSTS:
		return ha_int_parse(text, 1, 4096, &o->hosts);
	case OPT_NCCL:
		o->nccl = text;
		return true;
	case OPT_NET:
		o->net = nccl_net_find(text);
		return ha_parse_check(o->net != NULL, "hawser, ib or socket");
	case OPT_VERSUS:
		o->versus = nccl_net_find(text);
		return ha_parse_check(o->versus != NULL, "hawser, ib or socket");
	case OPT_ROUNDS:
		return ha_int_parse(text, 1, NCCL_ROUNDS_MOST, &o->rounds);
	case OPT_ONE_SCALE:
		o->one_scale = true;
		return true;
	case OPT_PORT_FAILOVER:
		o->port_failover = true;
		return true;
	}
	return false;
}

static bool operation_choose(void *context, const char *name)
{
	struct nccl_options *o = context;

	o->operation = nccl_operation_find(name);
	return o->operation != NULL;
}

static int graphs_check(const struct nccl_options *o)
{
	if (!o->graphs)
		return 0;
	if (!o->run.iters)
		return ha_complain(PROGRAM, "-G captures the measured iterations, of which -n 0 has none");
	if (o->run.duration_ns || o->run.check_all || o->blocking)
		return ha_complain(PROGRAM, "-G does not go with --duration, --check-all or -z 1");
	return 0;
}

static int options_check(const struct nccl_options *o)
{
	const struct ha_launch_options *l = &o->run.launch;
	int err = ha_run_options_check(&o->run, o->operation->layout->reduces);

	if (err)
		return err;
	if (o->run.root && l->ranks && o->run.root >= l->ranks * o->gpus)
		return ha_complain(PROGRAM, "--root is not one of the ranks");
	if (o->hosts && l->ranks && l->ranks % o->hosts)
		return ha_complain(PROGRAM, "%d ranks cannot be shared evenly by %d hosts", l->ranks, o->hosts);
	if (o->versus && !o->net)
		return ha_complain(PROGRAM, "--vs needs --net, the transport to compare it with");
	if (o->versus && o->versus == o->net)
		return ha_complain(PROGRAM, "--vs needs another transport than --net");
	if (o->versus && o->run.duration_ns)
		return ha_complain(PROGRAM, "--duration does not go with --vs");
	if (o->versus && o->run.iters < o->rounds)
		return ha_complain(PROGRAM, "%d measured iterations are not enough for %d rounds", o->run.iters,
				   o->rounds);
	if (o->port_failover && (!o->net || !o->net->verbs))
		return ha_complain(PROGRAM, "--port-failover is of NCCL's own IB transport: it needs --net ib");
	return graphs_check(o);
}

int nccl_options_parse(struct nccl_options *o, int argc, char **argv)
{
	const char *names[2 * OPTIONS_MOST + 1];
	struct ha_program program = {
		.name = PROGRAM,
		.options = table,
		.options_count = sizeof(table) / sizeof(table[0]),
		.redops = HA_REDOPS,
		.names = names,
		.about = "Runs NCCL's collectives by its public interface and compares every element of the result with an "
			 "independent\ncomputation. With -g each process has N GPUs, so there are N times as many NCCL ranks "
			 "as processes.",
		.take = option_take,
		.choose = operation_choose,
	};
	int result;

	*o = (struct nccl_options){ .gpus = 1, .rounds = 5 };
	for (int i = 0; i < nccl_operations_count; i++) {
		names[2 * i] = nccl_operations[i].name;
		names[2 * i + 1] = nccl_operations[i].help;
	}
	names[2 * nccl_operations_count] = NULL;
	result = ha_run_options_parse(&o->run, &program, o, argc, argv);
	return result ? result : options_check(o);
}
