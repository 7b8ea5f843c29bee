/* SPDX-License-Identifier: BSD-3-Clause */
/* page.h - what a browser shows: HTML and SVG, nothing that runs in it, nothing from elsewhere */
#ifndef HAWSER_EXPORTER_PAGE_H
#define HAWSER_EXPORTER_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/exporter/watcher.h"

/* again: the browser asks again after two seconds. */
void page_print(const struct watcher *w, bool again, FILE *out);

#endif
