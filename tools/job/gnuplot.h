/* SPDX-License-Identifier: BSD-3-Clause */
/* gnuplot.h - texts in gnuplot's scripts */
#ifndef HAWSER_JOB_GNUPLOT_H
#define HAWSER_JOB_GNUPLOT_H

#include <stdio.h>

/* For between single quotes: what would end them, or begin an escape, is a space. */
static inline void ha_gnuplot_text(const char *text, FILE *out)
{
	for (; *text; text++)
		fputc(*text == '\'' || *text == '\\' ? ' ' : *text, out);
}

#endif
