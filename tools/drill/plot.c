/* SPDX-License-Identifier: BSD-3-Clause */
/* The report as a picture: what arrived over time, with a band for each drill, by gnuplot. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "tools/drill/drill.h"
#include "tools/job/gnuplot.h"

#define BIN_NS ((int64_t)(100 * HA_NS_PER_MS)) /* a point of the curve */
#define PIXELS_PER_S 24
#define WIDTH_LEAST 900
#define WIDTH_MOST 8000

static double to_seconds(const struct drill_run *run, int64_t at)
{
	return (double)(at - run->zero) / (double)HA_NS_PER_S;
}

static void put_band(const struct drill_run *run, const struct drill *d, unsigned number, FILE *out)
{
	static const char *const colours[] = { "#f2b8b5", "#f7d9a8", "#c9daf8", "#f2b8b5" };

	fprintf(out,
		"set object %u rectangle from first %f,graph 0 to first %f,graph 1 behind "
		"fillcolor rgb '%s' fillstyle solid noborder\n",
		number + 1, to_seconds(run, d->taken), to_seconds(run, d->put_back),
		colours[d->fault.kind]);
	fprintf(out, "set label '%s ", fault_name(d->fault.kind));
	ha_gnuplot_text(d->target, out);
	if (d->verdict != DRILL_SURVIVED)
		fprintf(out, ": %s", drill_verdict_text(d->verdict));
	fprintf(out, "' at first %f,graph 0.98 right rotate by 90 offset 0.8,0 front\n",
		to_seconds(run, d->taken));
	if (d->again && d->lapsed)
		fprintf(out,
			"set arrow from first %f,graph 0 to first %f,graph 1 nohead dashtype 2 "
			"linecolor rgb '#2e7d32'\n",
			to_seconds(run, d->again), to_seconds(run, d->again));
}

static void put_curve(const struct drill_run *run, FILE *out)
{
	const struct watch *w = &run->watch;
	const struct watch_sample *from = w->samples;

	for (size_t i = 1; i < w->samples_count; i++) {
		const struct watch_sample *s = &w->samples[i];

		if (s->at - from->at < BIN_NS)
			continue;
		if (s->bytes >= from->bytes)
			fprintf(out, "%f %f\n", to_seconds(run, s->at),
				(double)(s->bytes - from->bytes) * 1e3 /
					(double)(s->at - from->at));
		from = s;
	}
}

static int width_of(const struct drill_run *run)
{
	const struct watch *w = &run->watch;
	double time = w->samples_count ? to_seconds(run, w->samples[w->samples_count - 1].at) : 0;
	int width = (int)(time * PIXELS_PER_S);

	width = width < WIDTH_LEAST ? WIDTH_LEAST : width;
	return width > WIDTH_MOST ? WIDTH_MOST : width;
}

static void put_script(const struct drill_run *run, const char *path, FILE *out)
{
	fprintf(out, "set terminal pngcairo size %d,560 noenhanced\nset output '", width_of(run));
	ha_gnuplot_text(path, out);
	fprintf(out, "'\nset encoding utf8\nset title 'ha drill: ");
	ha_gnuplot_text(run->job->name, out);
	fprintf(out, "; bands: taken away, green: all protected again'\n"
		     "set xlabel 'seconds'\nset ylabel 'MB/s that arrived'\n"
		     "set yrange [0:*]\nset key off\n");
	for (unsigned i = 0; i < run->count; i++)
		if (run->drills[i].verdict != DRILL_NOT_DONE)
			put_band(run, &run->drills[i], i, out);
	fprintf(out, "$data << END\n");
	put_curve(run, out);
	fprintf(out, "END\nplot $data with lines linewidth 2 linecolor rgb '#1a4f8b'\n");
}

int drill_write_png(const struct drill_run *run, const char *path)
{
	FILE *gnuplot;
	int status;

	if (run->watch.samples_count < 2)
		return -ENODATA;
	gnuplot = popen("gnuplot", "we");
	if (!gnuplot)
		return -errno;
	put_script(run, path, gnuplot);
	status = pclose(gnuplot);
	return status ? -EIO : 0;
}
