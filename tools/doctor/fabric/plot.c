/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix as a picture: three fields, by gnuplot. What was not reached is red. */
#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "tools/doctor/fabric/show.h"
#include "tools/job/gnuplot.h"

#define CELL 26    /* pixels of a cell */
#define BORDER 190 /* pixels of the names */

enum field { FIELD_BANDWIDTH, FIELD_LATENCY, FIELD_STALL, FIELDS };

static const char *const titles[FIELDS] = { "MB/s", "latency, us", "pause over a failover, ms" };

static void put_tics(const struct fabric *f, char axis, FILE *out)
{
	fprintf(out, "set %ctics %s(", axis, axis == 'x' ? "rotate by 90 right " : "");
	for (int p = 0; p < f->ports_count; p++) {
		fprintf(out, "%s'", p ? ", " : "");
		ha_gnuplot_text(f->ports[p].host, out);
		fputc(' ', out);
		ha_gnuplot_text(f->ports[p].label, out);
		fprintf(out, "' %d", p);
	}
	fprintf(out, ")\n");
}

static bool is_bad(const struct fabric_cell *cell, enum field field)
{
	if (cell->state == FABRIC_NOT_TRIED)
		return false;
	return cell->state != FABRIC_REACHED ||
	       (field == FIELD_STALL && cell->failover == FABRIC_FAILED);
}

static float value_of(const struct fabric_cell *cell, enum field field)
{
	if (field == FIELD_BANDWIDTH)
		return cell->mbs;
	return field == FIELD_LATENCY ? cell->latency_us : cell->stall_ms;
}

static bool has_value(const struct fabric_cell *cell, enum field field)
{
	return cell->state == FABRIC_REACHED &&
	       (field != FIELD_STALL || cell->failover == FABRIC_SURVIVED);
}

/* x and y of each cell, and its value. */
static void put_cells(const struct fabric *f, enum field field, bool bad, FILE *out)
{
	fprintf(out, "$%s%d << END\n", bad ? "bad" : "good", (int)field);
	for (int from = 0; from < f->ports_count; from++)
		for (int to = 0; to < f->ports_count; to++) {
			const struct fabric_cell *cell = fabric_cell(f, from, to);

			if (bad ? is_bad(cell, field) : has_value(cell, field))
				fprintf(out, "%d %d %f\n", to, from,
					bad ? 0 : (double)value_of(cell, field));
		}
	fprintf(out, "-9 -9 0\nEND\n"); /* outside of the picture: a block may not be empty */
}

static void put_field(const struct fabric *f, enum field field, FILE *out)
{
	put_cells(f, field, false, out);
	put_cells(f, field, true, out);
	fprintf(out,
		"set title '%s'\nset palette defined (%s)\n"
		"plot $good%d using 1:2:(0.48):(0.48):3 with boxxyerror fillstyle solid 1 "
		"palette notitle, $bad%d using 1:2:(0.48):(0.48) with boxxyerror fillstyle "
		"solid 1 linecolor rgb '#c62828' notitle\n",
		titles[field],
		field == FIELD_BANDWIDTH ? "0 '#fff3e0', 1 '#1a4f8b'" : "0 '#e3edf7', 1 '#8b4f1a'",
		(int)field, (int)field);
}

static void put_script(const struct fabric *f, const char *path, FILE *out)
{
	int side = f->ports_count * CELL + BORDER;

	side = side < 420 ? 420 : side;
	side = side > 3000 ? 3000 : side;
	fprintf(out, "set terminal pngcairo size %d,%d noenhanced\nset output '", FIELDS * side,
		side + 60);
	ha_gnuplot_text(path, out);
	fprintf(out,
		"'\nset encoding utf8\nset multiplot layout 1,%d title 'ha doctor --fabric: from "
		"the row to the column; red: not reached, or lost'\nset xrange [-0.5:%d.5]\n"
		"set yrange [%d.5:-0.5]\nset cbrange [0:*]\n",
		(int)FIELDS, f->ports_count - 1, f->ports_count - 1);
	put_tics(f, 'x', out);
	put_tics(f, 'y', out);
	for (int field = 0; field < FIELDS; field++)
		put_field(f, (enum field)field, out);
	fprintf(out, "unset multiplot\n");
}

int fabric_write_png(const struct fabric *fabric, const char *path)
{
	FILE *gnuplot = popen("gnuplot", "we");

	if (!gnuplot)
		return -errno;
	put_script(fabric, path, gnuplot);
	return pclose(gnuplot) ? -EIO : 0;
}
