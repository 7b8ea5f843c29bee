/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5_fake.h - a libmlx5 and verbs that carry out nothing: they note which commands each object
 * has seen and what they carried, count what is not given back, and refuse what a test asks them to
 */
#ifndef TESTS_GPU_MLX5_FAKE_H
#define TESTS_GPU_MLX5_FAKE_H

#include "gpu/host/host.h"
#include "gpu/host/mlx5.h"

#include <stdbool.h>

#define PES 2
#define NICS 2
#define DEVICES_MAX 8
#define OBJECTS 128

struct fake_obj {
	int pe;
	uint32_t number;
	unsigned opcode[16], n; /* commands it has seen */
	uint8_t rtr[272], made[272];
};

extern const struct ha_gpu_mlx5_dv fake_dv;
extern struct ha_verbs_ops fake_verbs;

extern struct ibv_device fake_device[DEVICES_MAX];
extern int fake_ndevices;      /* NICS, unless a test wants others */
extern uint64_t fake_one_card; /* the system image GUID of all; 0: each has its own */
extern struct fake_obj fake_object[OBJECTS];
extern unsigned fake_nobjects;
extern long fake_live;         /* objects and pieces of memory that exist */
extern __thread int fake_self; /* which process the set-up thread plays */
extern char fake_root[80];     /* of sysfs */

/* Memory that counts as live until it is given back. */
void *fake_alloc(size_t bytes);
int fake_free(void *p);

/* An event of the port is in the file of each context. */
void fake_report_event(enum ibv_event_type type, int port);
extern unsigned fake_nevents, fake_taken, fake_acknowledged;
extern int fake_no_events; /* the errno where there are none */

/* Three bytes of a command, big-endian. */
uint32_t fake_field24(const uint8_t *b, unsigned byte);

/* Commands with this opcode fail with that errno. */
extern unsigned fake_refused_opcode;
extern int fake_refused_errno;
extern bool fake_device_gone;

/* Registers that a context does not give: of one queue pair alone, not cached; BlueFlame. */
extern bool fake_no_dedicated, fake_no_blueflame;

/* What a port's query says, how often it was asked, and the errno that it fails with. */
extern enum ibv_port_state fake_port_state;
extern uint16_t fake_lid;
extern uint8_t fake_gid_byte;
extern long fake_queries;
extern int fake_query_fails;

extern long fake_registered_dmabuf;
extern int fake_dmabuf_error; /* of a kernel or driver that takes none */

#endif
