/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/fabric/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/hash.h"
#include "base/log.h"
#include "rdma/topo/device.h"
#include "rdma/verbs/dlopen.h"
#include "tools/doctor/fabric/judge.h"
#include "tools/doctor/fabric/show.h"
#include "tools/doctor/fabric/survey.h"
#include "tools/doctor/nccl_conf.h"
#include "tools/job/failure.h"
#include "tools/job/fault.h"
#include "tools/job/output.h"
#include "tools/job/rendezvous.h"

#define RETRIES_MOST 3 /* of a connection that has lost everything: some seconds */

/* What a rank has open. */
struct rank {
	struct fabric_survey survey;
	struct ha_verbs_ops *verbs;
	struct ha_topo topo;
	struct ha_config config, plain, guarded;
};

void fabric_options_default(struct fabric_options *options)
{
	*options = (struct fabric_options) {
		.launch = { .program = "ha doctor", .rank = -1, .timeout_s = 60 },
		.probe = { .time_ns = 100 * HA_NS_PER_MS, .limit_ns = 10 * HA_NS_PER_S },
		.slow_percent = 70,
		.failover = true,
	};
}

/* What fails is in the matrix; the core's own lines would be many. */
static void drop_line(int level, unsigned long flags, const char *file, int line,
		      const char *format, ...)
{
}

/* ---- the devices of this rank ---- */

/* No status page, no file of events: this is no job. */
static void configure_rank(struct rank *r)
{
	doctor_nccl_conf_load();
	ha_config_load_env(&r->config);
	strcpy(r->config.status_dir, "none");
	r->config.events[0] = '\0';
	r->config.max_retries = RETRIES_MOST;
	r->plain = r->guarded = r->config;
	r->plain.enable_backup = false;
	r->guarded.enable_backup = true;
}

static int context_open(const struct rank *r, const struct ha_config *config, struct ha_ctx **ctx)
{
	struct ha_ctx_params params = { .config = config, .verbs = r->verbs };
	int err = ha_ctx_create(&params, ctx);

	return err ? ha_fault(err, "the devices cannot be used: %s; `ha doctor` says more",
			      strerror(-err))
		   : 0;
}

/* Ranks on one host have the same addresses, and those of software NICs differ. */
static uint64_t hash_identity(const struct rank *r, const char *host)
{
	uint64_t h = ha_hash_text(HA_HASH_START, host);

	for (int i = 0; i < r->topo.ndevices; i++) {
		const struct ha_topo_device *dev = &r->topo.devices[i];

		h = ha_hash_bytes(h, dev->address.gid.raw, sizeof(dev->address.gid.raw));
		h = ha_hash_word(h, dev->node_guid ^ dev->address.lid);
	}
	return h;
}

static int devices_open(struct rank *r)
{
	struct fabric_survey *s = &r->survey;
	int err = ha_verbs_open_library(r->config.verbs, &r->verbs);

	if (!err)
		err = ha_topo_discover(r->verbs, &r->config, &r->topo);
	if (err)
		return ha_fault(err,
				"no library of verbs, or no devices: %s; `ha doctor` says more",
				strerror(-err));
	if (!r->topo.ndevices)
		return 0;
	err = context_open(r, &r->plain, &s->plain);
	return err ? err : context_open(r, &r->guarded, &s->guarded);
}

/* One that was down when a context was made is not used there, whatever it is now. */
static bool has_port(const struct fabric_survey *s, const char *label)
{
	return fabric_device_find(s->plain, label) >= 0 &&
	       fabric_device_find(s->guarded, label) >= 0;
}

/* The state of the ports when all ranks are there: some may have waited long. */
static void fill_hello(struct rank *r)
{
	struct fabric_hello *mine = &r->survey.mine;

	if (gethostname(mine->host, sizeof(mine->host) - 1))
		strcpy(mine->host, "?");
	mine->host[strcspn(mine->host, ".")] = '\0';
	mine->id = hash_identity(r, mine->host);
	snprintf(mine->why, sizeof(mine->why), "%s", ha_fault_text());
	ha_fault_clear();
	if (*mine->why)
		return;
	mine->ports = r->topo.ndevices < FABRIC_PORTS_MAX ? r->topo.ndevices : FABRIC_PORTS_MAX;
	for (int i = 0; i < mine->ports; i++) {
		struct ha_topo_device *dev = &r->topo.devices[i];

		(void)ha_topo_refresh(&r->topo, &r->config, i);
		ha_topo_device_label(dev, mine->port[i].label, sizeof(mine->port[i].label));
		mine->port[i].speed_mbps = dev->speed_mbps;
		mine->port[i].up = dev->up && has_port(&r->survey, mine->port[i].label);
	}
}

static int rank_open(struct rank *r)
{
	struct fabric_survey *s = &r->survey;
	int err;

	configure_rank(r);
	ha_log_set_sink(drop_line);
	err = devices_open(r);
	if (err)
		return err;
	s->memory = mmap(NULL, fabric_probe_memory(), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (s->memory == MAP_FAILED)
		return ha_fault(-ENOMEM, "out of memory");
	return 0;
}

static void rank_close(struct rank *r)
{
	struct fabric_survey *s = &r->survey;

	if (s->plain)
		ha_ctx_destroy(s->plain);
	if (s->guarded)
		ha_ctx_destroy(s->guarded);
	if (r->topo.verbs)
		ha_topo_release(&r->topo);
	if (r->verbs)
		ha_verbs_close_library(r->verbs);
	fabric_survey_release(s);
}

/* ---- the report, at rank 0 ---- */

static void hosts_without(const struct fabric_survey *s, struct doctor_report *found)
{
	for (int rank = 0; rank < s->place->ranks; rank++) {
		const struct fabric_hello *hello = &s->hellos[rank];
		struct doctor_finding *finding;

		if (hello->ports)
			continue;
		finding = doctor_add(found, DOCTOR_ERROR, "fabric.host", hello->host,
				     "rank %d has no RDMA port%s%s", rank, *hello->why ? ": " : "",
				     hello->why);
		doctor_cost(finding, "NCCL takes another network there, or the job does not start");
		doctor_mend(finding, "`ha doctor` on that host");
	}
}

static enum ha_exit report_survey(const struct fabric_survey *s)
{
	const struct fabric_options *o = s->options;
	struct doctor_report found = { 0 };
	bool sick;
	int err = 0;

	hosts_without(s, &found);
	fabric_judge(&s->fabric, o->slow_percent, &found);
	sick = found.count[DOCTOR_ERROR] || found.lost ||
	       (o->strict && found.count[DOCTOR_WARNING]);
	if (o->json)
		err = fabric_print_json(&s->fabric, &found, stdout);
	else
		fabric_print(&s->fabric, &found, o->verbose, stdout);
	doctor_report_free(&found);
	if (o->png && fabric_write_png(&s->fabric, o->png)) {
		fprintf(stderr, "ha doctor: gnuplot did not write %s\n", o->png);
		err = -EIO;
	}
	return err || sick || fflush(stdout) ? HA_EXIT_WRONG : HA_EXIT_OK;
}

/* ---- ranks ---- */

/* A host without devices is a finding, and no reason for the others not to go on. */
static int rank_work(struct rank *r)
{
	struct fabric_survey *s = &r->survey;
	int err = 0;

	fill_hello(r);
	if (!s->place->rank)
		err = ha_picture_check("--png", s->options->png);
	if (!err)
		err = fabric_survey_meet(s);
	if (!err)
		err = fabric_survey_measure(s);
	return err ? err : fabric_survey_gather(s);
}

static enum ha_exit rank_body(const void *context, const struct ha_place *place)
{
	const struct fabric_options *options = context;
	struct rank *r = calloc(1, sizeof(*r));
	enum ha_exit status = HA_EXIT_OK;
	int err;

	if (!r)
		return HA_EXIT_FAILED;
	r->survey.options = options;
	r->survey.place = place;
	(void)rank_open(r);
	err = ha_rendezvous_open(&r->survey.rendezvous, place, options->launch.timeout_s);
	if (!err)
		err = rank_work(r);
	if (err) {
		status = ha_failure_report(r->survey.rendezvous, place, options->launch.program);
		fflush(NULL);
		_exit(place->forked ? status : HA_EXIT_WRONG);
	}
	if (!place->rank)
		status = report_survey(&r->survey);
	(void)ha_rendezvous_barrier(r->survey.rendezvous);
	ha_rendezvous_close(r->survey.rendezvous);
	rank_close(r);
	free(r);
	return status;
}

int fabric_run(const struct fabric_options *options)
{
	return ha_launch(&options->launch, rank_body, options);
}
