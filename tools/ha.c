/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The `ha` program: one binary, a table of subcommands. A subcommand is in cmd_<name>.c (or in a
 * folder of its own when it is large), declares itself in ha.h and takes one line of the table
 * below.
 */
#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "tools/ha.h"

struct ha_command {
	const char *name;
	const char *help; /* one line */
	int (*run)(int argc, char **argv);
};

static int help_run(int argc, char **argv);
static int version_run(int argc, char **argv);

static const struct ha_command commands[] = {
	{ "nccl",
	  "run NCCL's collectives by its own interface: verify every element, measure, show which "
	  "network it took",
	  ha_cmd_nccl },
	{ "perf", "drive a NCCL net plugin over host memory: verify every byte, measure",
	  ha_cmd_perf },
	{ "sim", "run the core through random traffic and faults in virtual time; replay a seed",
	  ha_cmd_sim },
	{ "ina-sim",
	  "reduction in the network: switch and ranks under random faults; replay a seed",
	  ha_cmd_ina_sim },
	{ "ina-perf", "collectives through the network's sums: verify every element, measure",
	  ha_cmd_ina_perf },
	{ "gpu-check", "try what only hardware can show of GPU-initiated traffic, item by item",
	  ha_cmd_gpu_check },
	{ "gpu-moe",
	  "GPU-initiated traffic: tokens to experts and back while NICs are killed; verify every "
	  "bit",
	  ha_cmd_gpu_moe },
	{ "topo", "draw the RDMA devices as hawser sees them, and the standby of each",
	  ha_cmd_topo },
	{ "switches", "the leaf switch that each RDMA port hangs on; write it down for the jobs",
	  ha_cmd_switches },
	{ "doctor", "look at this host before a job: what is wrong, what it costs, what mends it",
	  ha_cmd_doctor },
	{ "drill", "take NICs, ports and rails of a job away, put them back, say what it cost",
	  ha_cmd_drill },
	{ "config", "show every setting, its value and where it comes from", ha_cmd_config },
	{ "status", "every process's connections: protected or not, events, counters",
	  ha_cmd_status },
	{ "top", "jobs, ports, connections and events of this host, as they change", ha_cmd_top },
	{ "agent", "the hints that ha-agent gives to the plugins; set one by hand", ha_cmd_agent },
	{ "ina", "groups of ha-controller: list, create, renew, destroy", ha_cmd_ina },
	{ "soft", "list the software NICs of all processes: address, state, faults, counters",
	  ha_cmd_soft },
	{ "cut", "pull the cable of a software NIC", ha_cmd_cut },
	{ "heal", "undo every fault of a software NIC but kill", ha_cmd_cut },
	{ "drop", "make a software NIC lose packets", ha_cmd_cut },
	{ "delay", "make a software NIC slow", ha_cmd_cut },
	{ "reorder", "make packets of a software NIC overtake each other", ha_cmd_cut },
	{ "duplicate", "make a software NIC deliver packets twice", ha_cmd_cut },
	{ "blackhole", "make packets of one direction vanish while the port stays up", ha_cmd_cut },
	{ "rate", "limit what leaves a software NIC per second", ha_cmd_cut },
	{ "speed", "let a software NIC's port come back with another speed", ha_cmd_cut },
	{ "srq-error", "let a software NIC's shared receive queues fail", ha_cmd_cut },
	{ "kill", "fail a software NIC: it is gone until it is restored", ha_cmd_cut },
	{ "restore", "let a killed software NIC be listed again", ha_cmd_cut },
	{ "version", "print the version", version_run },
	{ "help", "print this list", help_run },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage_print(FILE *out)
{
	fprintf(out, "usage: ha COMMAND [ARGUMENTS]\n       ha COMMAND --help\n\ncommands:\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
}

static int help_run(int argc, char **argv)
{
	usage_print(stdout);
	return 0;
}

static int version_run(int argc, char **argv)
{
	printf("ha: hawser %s\n", ha_version);
	return 0;
}

/* As --help=words of base/options.h: for completions. */
static int words_run(void)
{
	for (size_t i = 0; i < COMMANDS; i++)
		printf("%s\t\t%s\n", commands[i].name, commands[i].help);
	return 0;
}

/* ha(1), which leads to the pages of the commands. */
static int man_run(void)
{
	printf(".TH HA 1 \"\" \"hawser %s\" hawser\n.SH NAME\nha \\- the tool of hawser\n"
	       ".SH SYNOPSIS\n.B ha\nCOMMAND [ARGUMENTS]\n.SH DESCRIPTION\n"
	       "Each command has a page of its own,\n.BR ha\\-COMMAND (1).\n.SH COMMANDS\n",
	       ha_version);
	for (size_t i = 0; i < COMMANDS; i++)
		printf(".TP\n.B %s\n%s\n", commands[i].name, commands[i].help);
	return 0;
}

static const struct ha_command *command_find(const char *name)
{
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(name, commands[i].name))
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct ha_command *command;

	if (argc < 2) {
		usage_print(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help=words"))
		return words_run();
	if (!strcmp(argv[1], "--help=man"))
		return man_run();
	command = command_find(argv[1]);
	if (!command) {
		fprintf(stderr, "ha: there is no command '%s'; `ha --help` lists them\n", argv[1]);
		return 2;
	}
	return command->run(argc - 1, argv + 1);
}
