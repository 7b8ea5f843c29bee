/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_cudart.h - what the stand-in for the CUDA runtime has beside CUDA's own calls */
#ifndef TESTS_INA_FRONT_FAKE_CUDART_H
#define TESTS_INA_FRONT_FAKE_CUDART_H

#include <stdatomic.h>

struct fake_counts {
	atomic_uint registered, unregistered, streams_made, streams_gone, events_made, events_gone,
		copies_asked, copies_done;
	/*
	 * calls that CUDA would refuse or that race: other device's stream, host memory that is not
	 * registered, ...
	 */
	atomic_uint wrong;
	atomic_uint fail_at; /* the how-maniest cudaMemcpyAsync fails; 0: none */
	/* cudaEventRecord: how many; from the how-maniest on so many fail; 0: none */
	atomic_uint records, fail_record_at, fail_records;
	atomic_uint delay_us; /* each copy starts so late */
};

/* Runs call(arg) in the stream's order, like a kernel. */
typedef void (*fake_launch_fn)(void *stream, void (*call)(void *arg), void *arg);
typedef struct fake_counts *(*fake_counts_fn)(void);

#endif
