/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lines.h - what the two protocols share whose data carries its own flags
 *
 * LL: lines of 16 bytes, each half 4 bytes of data and a flag of 4 bytes, so that 8 bytes that
 * arrive at once suffice.
 * LL128: lines of 128 bytes, the last 8 of which are the flag. The flag of a step is its number
 * plus one. The receiver looks at the flags only, not at the tail.
 */
#ifndef SOFTCUDA_NCCL_LINES_H
#define SOFTCUDA_NCCL_LINES_H

#include "softcuda/nccl/lane.h"

/* of data that are combined at a time: 32 lines of LL128, 480 of LL */
#define LINES_BLOCK_BYTES 3840u

/* How one of the two protocols keeps its lines. */
struct line_format {
	unsigned data_bytes; /* in a line */
	unsigned line_bytes;
	unsigned group; /* a chunk is rounded up to a multiple of so many lines */
	enum protocol protocol;
	/* Read up to `count` lines into `data`; the number of those that have arrived. */
	unsigned (*read)(char *data, const char *lines, unsigned count, uint64_t step);
	/* `bytes` of data; what is missing to `count` lines is undefined. */
	void (*write)(char *lines, const char *data, size_t bytes, unsigned count, uint64_t step);
	/* is the slot of this step written to its end? NULL: never */
	bool (*fills_slot)(uint64_t step);
};

/* Number of lines of a step's slot. */
unsigned lines_of_slot(const struct lane *lane, const struct line_format *format);

/* The slot of the endpoint's current step. */
char *line_slot(const struct lane *lane, const struct endpoint *endpoint,
		const struct line_format *format);

/* Lines that the current operation takes. */
unsigned lines_of_operation(const struct lane *lane, const struct line_format *format);

/*
 * Move lines until one is missing. PROGRESS_DONE: all were moved, the counters are still to be
 * posted.
 */
enum progress advance_lines(struct lane *lane, const struct line_format *format);

/* May the operation be written? Once it may, its size is announced. */
bool begin_sending_lines(struct lane *lane, const struct line_format *format);

#endif
