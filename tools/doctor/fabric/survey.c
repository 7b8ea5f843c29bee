/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/doctor/fabric/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/doctor/fabric/plan.h"
#include "tools/job/fault.h"
#include "tools/job/rendezvous.h"

#define ALL_PAIRS_MOST 32 /* ports of all hosts: each is measured with each without being asked */

/* What a rank offers for one pair. */
struct offer {
	int32_t plain_error, guarded_error;
	char plain[HA_HANDLE_MAX], guarded[HA_HANDLE_MAX];
};

/* One pair of ports, from the view of one end. */
struct visit {
	int peer_rank;    /* -1: none in this step */
	int dev;          /* of this host */
	int mine, theirs; /* in the list of all ports */
	bool first;
};

int fabric_device_find(const struct ha_ctx *ctx, const char *label)
{
	for (int i = 0; i < ha_ctx_ndevices(ctx); i++) {
		const char *port = ha_ctx_port(ctx, i);

		if (port && !strcmp(port, label))
			return i;
	}
	return -1;
}

/* ---- who is there ---- */

static bool speaks_already(const struct fabric_survey *s, int rank)
{
	for (int r = 0; r < rank; r++)
		if (s->host_of[r] >= 0 && s->hellos[r].id == s->hellos[rank].id)
			return true;
	return false;
}

static void hosts_number(struct fabric_survey *s)
{
	struct fabric *f = &s->fabric;

	for (int r = 0; r < s->place->ranks; r++) {
		s->host_of[r] = -1;
		if (!s->hellos[r].ports || speaks_already(s, r))
			continue;
		s->host_of[r] = f->hosts_count;
		s->rank_of[f->hosts_count] = r;
		s->first_port[f->hosts_count++] = f->ports_count;
		f->ports_count += s->hellos[r].ports;
		if (s->hellos[r].ports > s->ports_most)
			s->ports_most = s->hellos[r].ports;
	}
}

/* Two hosts of one name, as ranks on software NICs are, are told apart by their ranks. */
static void host_name(const struct fabric_survey *s, int rank, char *name, size_t size)
{
	bool alone = true;

	for (int r = 0; r < s->place->ranks; r++)
		if (r != rank && s->host_of[r] >= 0 &&
		    !strcmp(s->hellos[r].host, s->hellos[rank].host))
			alone = false;
	if (alone)
		snprintf(name, size, "%s", s->hellos[rank].host);
	else
		snprintf(name, size, "%.50s#%d", s->hellos[rank].host, rank);
}

static void ports_list(struct fabric_survey *s)
{
	for (int h = 0; h < s->fabric.hosts_count; h++) {
		int rank = s->rank_of[h];

		for (int i = 0; i < s->hellos[rank].ports; i++) {
			struct fabric_port *port = &s->fabric.ports[s->first_port[h] + i];

			host_name(s, rank, port->host, sizeof(port->host));
			snprintf(port->label, sizeof(port->label), "%s",
				 s->hellos[rank].port[i].label);
			port->speed_mbps = s->hellos[rank].port[i].speed_mbps;
			port->up = s->hellos[rank].port[i].up;
		}
	}
}

int fabric_survey_meet(struct fabric_survey *s)
{
	size_t ranks = (size_t)s->place->ranks, ports;
	int err;

	s->hellos = calloc(ranks, sizeof(*s->hellos));
	s->host_of = calloc(ranks, sizeof(*s->host_of));
	s->rank_of = calloc(ranks, sizeof(*s->rank_of));
	s->first_port = calloc(ranks, sizeof(*s->first_port));
	if (!s->hellos || !s->host_of || !s->rank_of || !s->first_port)
		return ha_fault(-ENOMEM, "out of memory");
	err = ha_rendezvous_allgather(s->rendezvous, &s->mine, sizeof(s->mine), s->hellos);
	if (err)
		return err;
	hosts_number(s);
	ports = (size_t)s->fabric.ports_count;
	s->fabric.ports = calloc(ports + 1, sizeof(*s->fabric.ports));
	s->fabric.cells = calloc(ports * ports + 1, sizeof(*s->fabric.cells));
	if (!s->fabric.ports || !s->fabric.cells)
		return ha_fault(-ENOMEM, "out of memory for %zu ports", ports);
	ports_list(s);
	s->fabric.all_pairs = s->options->pairs == FABRIC_PAIRS_ALL ||
			      (s->options->pairs == FABRIC_PAIRS_AUTO && ports <= ALL_PAIRS_MOST);
	return 0;
}

/* ---- the plan ---- */

/* Step k of a round is a port of each of the two hosts; false: the hosts have no such ports. */
static bool step_ports(const struct fabric_survey *s, int first, int second, int step, int *a,
		       int *b)
{
	const struct fabric_hello *x = &s->hellos[s->rank_of[first]],
				  *y = &s->hellos[s->rank_of[second]];

	*a = step / s->ports_most;
	*b = step % s->ports_most;
	if (*a >= x->ports || *b >= y->ports)
		return false;
	return s->fabric.all_pairs || !strcmp(x->port[*a].label, y->port[*b].label);
}

/* A pair of this step with a port that is down is in the matrix, and is not visited. */
static bool note_down(struct fabric_survey *s, int mine, int theirs)
{
	const struct fabric_port *ports = s->fabric.ports;

	if (ports[mine].up && ports[theirs].up)
		return false;
	fabric_cell(&s->fabric, mine, theirs)->state = FABRIC_PORT_DOWN;
	fabric_cell(&s->fabric, theirs, mine)->state = FABRIC_PORT_DOWN;
	return true;
}

/* The visit of host h; true: there is one. */
static bool visit_find(struct fabric_survey *s, int round, int step, int h, struct visit *v)
{
	int partner = fabric_plan_partner(s->fabric.hosts_count, round, h), a, b;
	int first = h < partner ? h : partner, second = h < partner ? partner : h;

	if (partner < 0 || !step_ports(s, first, second, step, &a, &b))
		return false;
	v->first = h == first;
	v->dev = v->first ? a : b;
	v->mine = s->first_port[h] + v->dev;
	v->theirs = s->first_port[partner] + (v->first ? b : a);
	v->peer_rank = s->rank_of[partner];
	return !note_down(s, v->mine, v->theirs);
}

/* Whether any two hosts meet in this step: the others wait with them. */
static bool step_needed(struct fabric_survey *s, int round, int step)
{
	struct visit unused;
	bool needed = false;

	for (int h = 0; h < s->fabric.hosts_count; h++)
		needed |= visit_find(s, round, step, h, &unused);
	return needed;
}

/* ---- a visit ---- */

static void note_failure(struct fabric_cell *out, struct fabric_cell *in, int err)
{
	uint8_t state = err == -EBADMSG ? FABRIC_CORRUPT : FABRIC_UNREACHED;

	in->state = state;
	in->error = err;
	if (out->state == FABRIC_NOT_TRIED) {
		out->state = FABRIC_UNREACHED;
		out->error = err;
	}
}

static void measure_path(struct fabric_end *end, const char *handle, struct fabric_cell *out,
			 struct fabric_cell *in)
{
	int err = fabric_end_connect(end, handle);

	if (!err)
		err = fabric_measure_latency(end, out, in);
	if (!err)
		err = fabric_measure_bandwidth(end, in);
	if (err) {
		note_failure(out, in, err);
		fabric_end_close(end);
		return;
	}
	out->state = in->state = FABRIC_REACHED;
}

static void measure_failover(struct fabric_end *end, const char *handle, struct fabric_cell *out,
			     struct fabric_cell *in)
{
	int err = fabric_end_connect(end, handle);

	if (!err)
		err = fabric_measure_failover(end, out, in);
	if (!err)
		return;
	fabric_end_close(end);
	if (out->failover == FABRIC_NO_FAILOVER) {
		out->failover = FABRIC_FAILED;
		out->lost_error = err;
	}
	if (in->failover == FABRIC_NO_FAILOVER) {
		in->failover = FABRIC_FAILED;
		in->lost_error = err;
	}
}

/* One step at one rank; peer_rank -1: it has nobody to meet, and waits with the others. */
struct step {
	struct visit visit;
	struct fabric_end plain, guarded;
	struct fabric_cell *out, *in;
	struct offer mine;
	const struct offer *theirs;
};

static void step_offer(struct fabric_survey *s, struct step *step)
{
	struct visit *v = &step->visit;
	struct fabric_end end = { .options = &s->options->probe, .memory = s->memory };
	const char *port = s->mine.port[v->dev].label;

	end.first = v->first;
	step->plain = step->guarded = end;
	step->plain.ctx = s->plain;
	step->guarded.ctx = s->guarded;
	if (v->peer_rank < 0)
		return;
	step->plain.dev = fabric_device_find(s->plain, port);
	step->guarded.dev = fabric_device_find(s->guarded, port);
	step->out = fabric_cell(&s->fabric, v->mine, v->theirs);
	step->in = fabric_cell(&s->fabric, v->theirs, v->mine);
	step->mine.plain_error = fabric_end_listen(&step->plain, step->mine.plain);
	step->mine.guarded_error = fabric_end_listen(&step->guarded, step->mine.guarded);
}

static void step_path(struct step *step)
{
	int err = step->mine.plain_error;

	err = err ? err : step->theirs->plain_error;
	if (err)
		note_failure(step->out, step->in, err);
	else
		measure_path(&step->plain, step->theirs->plain, step->out, step->in);
}

/* Both ends have reached each other, and both have offered the second connection. */
static bool step_goes_on(const struct step *step, const int32_t *reached)
{
	return step->visit.peer_rank >= 0 && reached[step->visit.peer_rank] &&
	       step->out->state == FABRIC_REACHED && !step->mine.guarded_error &&
	       !step->theirs->guarded_error;
}

/* All ranks take part. Nobody closes what its peer still uses, or goes on while others measure. */
static int step_make(struct fabric_survey *s, struct step *step, struct offer *offers,
		     int32_t *reached)
{
	bool meets = step->visit.peer_rank >= 0;
	int32_t mine;
	int err;

	step_offer(s, step);
	err = ha_rendezvous_allgather(s->rendezvous, &step->mine, sizeof(step->mine), offers);
	if (!err && meets) {
		step->theirs = &offers[step->visit.peer_rank];
		step_path(step);
	}
	mine = meets && step->out->state == FABRIC_REACHED;
	if (!err)
		err = ha_rendezvous_allgather(s->rendezvous, &mine, sizeof(mine), reached);
	fabric_end_close(&step->plain);
	if (!err && s->options->failover && step_goes_on(step, reached))
		measure_failover(&step->guarded, step->theirs->guarded, step->out, step->in);
	if (!err)
		err = ha_rendezvous_barrier(s->rendezvous);
	fabric_end_close(&step->guarded);
	return err;
}

int fabric_survey_measure(struct fabric_survey *s)
{
	struct offer *offers = calloc((size_t)s->place->ranks, sizeof(*offers));
	int32_t *reached = calloc((size_t)s->place->ranks, sizeof(*reached));
	int rounds = fabric_plan_rounds(s->fabric.hosts_count), host = s->host_of[s->place->rank];
	uint64_t began = ha_clock_now(&ha_clock_live);
	int err = offers && reached ? 0 : ha_fault(-ENOMEM, "out of memory");

	for (int round = 0; round < rounds && !err; round++)
		for (int i = 0; i < s->ports_most * s->ports_most && !err; i++) {
			struct step step = { .visit.peer_rank = -1 };

			if (!step_needed(s, round, i))
				continue;
			if (host < 0 || !visit_find(s, round, i, host, &step.visit))
				step.visit.peer_rank = -1;
			err = step_make(s, &step, offers, reached);
		}
	s->fabric.seconds = (double)(ha_clock_now(&ha_clock_live) - began) / (double)HA_NS_PER_S;
	free(offers);
	free(reached);
	return err;
}

/* ---- one matrix ---- */

/* The worse of what the two ends have seen counts; the numbers are of the end that has some. */
static void cell_merge(struct fabric_cell *all, const struct fabric_cell *seen)
{
	if (seen->state > all->state) {
		all->state = seen->state;
		all->error = seen->error;
	}
	if (seen->failover > all->failover) {
		all->failover = seen->failover;
		all->lost_error = seen->lost_error;
	}
	all->mbs = seen->mbs > all->mbs ? seen->mbs : all->mbs;
	all->latency_us = seen->latency_us > all->latency_us ? seen->latency_us : all->latency_us;
	all->stall_ms = seen->stall_ms > all->stall_ms ? seen->stall_ms : all->stall_ms;
}

/* The rows and columns of a host's own ports: all that its rank can have seen. */
static void cells_copy(struct fabric_survey *s, int host, struct fabric_cell *packed, bool merge)
{
	int first = s->first_port[host], n = s->hellos[s->rank_of[host]].ports;
	struct fabric *f = &s->fabric;

	for (int i = first; i < first + n; i++)
		for (int other = 0; other < f->ports_count; other++) {
			struct fabric_cell *row = fabric_cell(f, i, other),
					   *column = fabric_cell(f, other, i);

			if (merge) {
				cell_merge(row, &packed[0]);
				cell_merge(column, &packed[1]);
			} else {
				packed[0] = *row;
				packed[1] = *column;
			}
			packed += 2;
		}
}

int fabric_survey_gather(struct fabric_survey *s)
{
	size_t cells = 2 * FABRIC_PORTS_MAX * (size_t)s->fabric.ports_count + 1;
	size_t ranks = s->place->rank ? 1 : (size_t)s->place->ranks;
	struct fabric_cell *mine = calloc(cells, sizeof(*mine)),
			   *all = calloc(ranks * cells, sizeof(*all));
	int host = s->host_of[s->place->rank];
	int err = mine && all ? 0 : ha_fault(-ENOMEM, "out of memory");

	if (!err && host >= 0)
		cells_copy(s, host, mine, false);
	if (!err)
		err = ha_rendezvous_gather(s->rendezvous, mine, cells * sizeof(*mine), all);
	for (int r = 1; !err && !s->place->rank && r < s->place->ranks; r++)
		if (s->host_of[r] >= 0)
			cells_copy(s, s->host_of[r], all + (size_t)r * cells, true);
	free(mine);
	free(all);
	return err;
}

void fabric_survey_release(struct fabric_survey *s)
{
	free(s->hellos);
	free(s->host_of);
	free(s->rank_of);
	free(s->first_port);
	free(s->fabric.ports);
	free(s->fabric.cells);
}
