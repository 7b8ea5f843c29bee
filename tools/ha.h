/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef HAWSER_TOOLS_HA_H
#define HAWSER_TOOLS_HA_H

/*
 * Subcommands of the `ha` program. Each gets the arguments from its own name on (argv[0] is the
 * subcommand's name) and returns the exit status: 0 done, 1 it ran and something is wrong, 2 it was
 * called wrongly.
 */
int ha_cmd_agent(int argc, char **argv);
int ha_cmd_config(int argc, char **argv);
int ha_cmd_doctor(int argc, char **argv);
int ha_cmd_drill(int argc, char **argv);
int ha_cmd_gpu_check(int argc, char **argv);
int ha_cmd_top(int argc, char **argv);
int ha_cmd_topo(int argc, char **argv);
int ha_cmd_nccl(int argc, char **argv);
int ha_cmd_perf(int argc, char **argv);
int ha_cmd_sim(int argc, char **argv);
int ha_cmd_gpu_moe(int argc, char **argv);
int ha_cmd_ina_perf(int argc, char **argv);
int ha_cmd_ina_sim(int argc, char **argv);
int ha_cmd_status(int argc, char **argv);
int ha_cmd_switches(int argc, char **argv);
int ha_cmd_soft(int argc, char **argv);
/* cut, heal, kill, drop, duplicate, reorder, delay and blackhole: argv[0] says which. */
int ha_cmd_ina(int argc, char **argv);
int ha_cmd_cut(int argc, char **argv);

#endif
