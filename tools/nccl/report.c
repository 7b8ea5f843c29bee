/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"
#include "tools/job/row_json.h"
#include "tools/job/table.h"
#include "tools/nccl/bench.h"
#include "tools/nccl/environment.h"
#include "tools/nccl/library.h"
#include "tools/nccl/operation.h"
#include "tools/nccl/options.h"
#include "tools/nccl/report.h"

void nccl_who_take(struct nccl_who *who, const struct nccl_bench *b)
{
	*who = (struct nccl_who) { .pid = getpid(),
				   .gpus = b->gpus.count,
				   .first_rank = b->gpus.each[0].rank };
	if (gethostname(who->host, sizeof(who->host) - 1))
		strcpy(who->host, "?");
	for (int i = 0; i < b->gpus.count && i < NCCL_GPUS_SHOWN; i++) {
		who->devices[i] = b->gpus.each[i].device;
		memcpy(who->buses[i], b->gpus.each[i].bus, sizeof(who->buses[i]));
	}
	nccl_witness_take(&who->witness, b->options);
}

/* ---- the table's head ---- */

static const char *placing_text(const struct nccl_bench *b, char text[96])
{
	const struct nccl_options *o = b->options;

	if (!b->library->soft)
		text[0] = 0;
	else if (o->hosts)
		snprintf(text, 96, ", on %d emulated host%s", o->hosts, o->hosts == 1 ? "" : "s");
	else
		snprintf(text, 96, ", each process an emulated host of its own");
	return text;
}

static struct nccl_witness *collect_witnesses(const struct nccl_report *r)
{
	int ranks = r->bench->place->ranks;
	struct nccl_witness *all = calloc((size_t)ranks, sizeof(*all));

	for (int i = 0; all && i < ranks; i++)
		all[i] = r->who[i].witness;
	return all;
}

static void networks_print(const struct nccl_report *r)
{
	static const char *const labels[] = { " A", " B" };
	struct nccl_witness *all = collect_witnesses(r);
	int sides = r->bench->gpus.sides;
	char text[640];

	for (int s = 0; all && s < sides; s++) {
		nccl_witness_text(all, r->bench->place->ranks, s, text, sizeof(text));
		printf("# network%s: %s\n", sides > 1 ? labels[s] : "", text);
	}
	free(all);
	for (int i = 0; i < NCCL_LINES && r->who[0].witness.lines[i][0]; i++)
		printf("#   NCCL's log, rank 0: %s\n", r->who[0].witness.lines[i]);
}

static void devices_print(const struct nccl_report *r)
{
	printf("#\n# Using devices\n");
	for (int i = 0; i < r->bench->place->ranks; i++) {
		const struct nccl_who *who = &r->who[i];

		for (int k = 0; k < who->gpus && k < NCCL_GPUS_SHOWN; k++)
			printf("#  Rank %2d Pid %6d on %s device %2d [%s]\n", who->first_rank + k,
			       who->pid, who->host, who->devices[k], who->buses[k]);
		if (who->gpus > NCCL_GPUS_SHOWN)
			printf("#  and %d more of Pid %d\n", who->gpus - NCCL_GPUS_SHOWN, who->pid);
	}
}

void nccl_report_header(const struct nccl_report *r)
{
	const struct nccl_bench *b = r->bench;
	const struct nccl_options *o = b->options;
	char placing[96], nccl[32], cuda[32];

	printf("# ha nccl %s: %s, %d ranks in %d processes (%s)%s\n", HAWSER_VERSION,
	       o->operation->name, b->gpus.ranks, b->place->ranks, b->place->launcher,
	       placing_text(b, placing));
	printf("# NCCL %s: %s\n", ha_nccl_version_text(b->library->nccl_version, nccl),
	       b->library->nccl_path);
	if (r->probe->instead[0])
		printf("#   and not the loader's: %s\n", r->probe->instead);
	printf("# CUDA runtime %s: %s%s\n", ha_cuda_version_text(b->library->cuda_version, cuda),
	       b->library->soft ? "softcuda, no GPU: kernels are done by host threads, " : "",
	       b->library->cuda_path);
	if (r->environment->set[0])
		printf("# set here, since nobody else has: %s\n", r->environment->set);
	networks_print(r);
	ha_table_settings(&o->run);
	printf(" graph: %d\n", o->graphs);
	devices_print(r);
	printf("#\n# p50, p99, max: of an iteration, out-of-place, over all processes; cpu: "
	       "processor time of all threads "
	       "of all processes per iteration\n");
	ha_table_columns(b->gpus.sides);
}

/* ---- rows ---- */

int nccl_report_add(struct nccl_report *r, const struct ha_row *row)
{
	int err = ha_rows_add(&r->rows, row);
	struct nccl_rounds *more;

	if (err || r->bench->gpus.sides < 2)
		return err;
	more = realloc(r->rounds, r->rows.count * sizeof(*more));
	if (!more)
		return ha_fault(-ENOMEM, "out of memory");
	r->rounds = more;
	r->rounds[r->rows.count - 1] = r->bench->rounds;
	return 0;
}

void nccl_report_row(const struct nccl_report *r, size_t i)
{
	const struct nccl_rounds *rounds;
	int sides = r->bench->gpus.sides;

	for (int s = 0; s < sides; s++)
		ha_table_row(&r->rows.rows[i], s, sides);
	if (sides < 2)
		return;
	rounds = &r->rounds[i];
	ha_table_ratios(&r->rows.rows[i]);
	printf("  B/A  median of %d rounds: time %.3f  p50 %.3f  cpu %.3f\n", rounds->count,
	       nccl_rounds_ratio(rounds->count, rounds->time_us),
	       nccl_rounds_ratio(rounds->count, rounds->p50_us),
	       nccl_rounds_ratio(rounds->count, rounds->cpu_us));
	fflush(stdout);
}

/* ---- JSON ---- */

static json_t *ranks_array(const struct nccl_report *r)
{
	json_t *array = json_array();

	for (int i = 0; i < r->bench->place->ranks; i++) {
		const struct nccl_who *who = &r->who[i];

		json_array_append_new(array, json_pack("{s:i, s:s, s:i, s:i, s:s, s:i}", "rank",
						       who->first_rank, "host", who->host, "pid",
						       who->pid, "dev", who->devices[0], "device",
						       who->buses[0], "gpus", who->gpus));
	}
	return array;
}

static json_t *network_object(const struct nccl_report *r, const struct nccl_witness *all, int side)
{
	int ranks = r->bench->place->ranks, connections = 0, protected = 0, unprotected = 0;
	const struct nccl_witness *first = &all[0];
	json_t *lines = json_array();
	char text[640];

	for (int i = 0; i < ranks; i++) {
		connections += all[i].connections;
		protected += all[i].protected;
		unprotected += all[i].unprotected;
	}
	for (int i = 0; i < NCCL_LINES && first->lines[i][0]; i++)
		json_array_append_new(lines, json_string(first->lines[i]));
	nccl_witness_text(all, ranks, side, text, sizeof(text));
	return json_pack("{s:s?, s:s, s:b, s:b, s:s, s:s, s:s, s:i, s:i, s:i, s:o}", "name",
			 first->networks[side][0] ? first->networks[side] : NULL, "text", text,
			 "plugin_loaded", first->loaded, "status_page", first->page, "plugin",
			 first->plugin, "hawser", first->hawser, "nics", first->nics, "connections",
			 connections, "protected", protected, "unprotected", unprotected, "log",
			 lines);
}

json_t *nccl_report_networks(const struct nccl_report *r)
{
	struct nccl_witness *all = collect_witnesses(r);
	json_t *array = json_array();

	for (int s = 0; all && s < r->bench->gpus.sides; s++)
		json_array_append_new(array, network_object(r, all, s));
	free(all);
	return array;
}

static void rounds_put(const struct nccl_report *r, json_t *object)
{
	json_t *results = json_object_get(object, "results");

	for (size_t i = 0; r->rounds && i < r->rows.count; i++)
		json_object_set_new(json_array_get(results, i), "rounds",
				    nccl_rounds_object(&r->rounds[i]));
}

int nccl_report_json(const struct nccl_report *r)
{
	const struct nccl_bench *b = r->bench;
	const struct nccl_options *o = b->options;
	json_t *object = json_object();
	char nccl[32], cuda[32];

	json_object_set_new(object, "program", json_string(o->run.launch.program));
	json_object_set_new(object, "version", json_string(HAWSER_VERSION));
	json_object_set_new(object, "operation", json_string(o->operation->name));
	json_object_set_new(object, "launcher", json_string(b->place->launcher));
	json_object_set_new(object, "ranks", ranks_array(r));
	json_object_set_new(object, "nccl_ranks", json_integer(b->gpus.ranks));
	json_object_set_new(object, "nccl",
			    json_pack("{s:s, s:s}", "version",
				      ha_nccl_version_text(b->library->nccl_version, nccl), "path",
				      b->library->nccl_path));
	json_object_set_new(object, "cuda",
			    json_pack("{s:s, s:s, s:b}", "version",
				      ha_cuda_version_text(b->library->cuda_version, cuda), "path",
				      b->library->cuda_path, "softcuda", b->library->soft));
	json_object_set_new(object, "networks", nccl_report_networks(r));
	json_object_set_new(object, "environment", json_string(r->environment->set));
	ha_run_options_put(object, &o->run);
	json_object_set_new(object, "hosts", json_integer(o->hosts));
	json_object_set_new(object, "graph_launches", json_integer(o->graphs));
	json_object_set_new(object, "registration", json_integer(o->registration));
	ha_rows_put(object, &r->rows, b->gpus.sides);
	rounds_put(r, object);
	return ha_json_write(object, &o->run);
}

void nccl_report_release(struct nccl_report *r)
{
	free(r->rows.rows);
	free(r->rounds);
	free(r->who);
}
