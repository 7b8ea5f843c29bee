/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * legacy.c - the symbols of version IBVERBS_1.0 (2006), whose structs were others
 *
 * They exist so that a program linked against them starts. Its device list is empty, which it must
 * be able to handle;
 * the other functions cannot be reached without a device and answer ENOSYS.
 */
#include "softroce/settings.h"

#include <errno.h>
#include <stdlib.h>

#define OLD(name) __asm__(".symver sr_legacy_refuse,ibv_" #name "@IBVERBS_1.0")

void *sr_legacy_list(int *n);
long sr_legacy_refuse(void);

__attribute__((used)) void *sr_legacy_list(int *n)
{
	sr_log_line("this program was built for libibverbs 1.0 of 2006; softroce has devices for "
		    "version 1.1 and later "
		    "only");
	if (n)
		*n = 0;
	return calloc(1, sizeof(void *));
}

__attribute__((used)) long sr_legacy_refuse(void)
{
	errno = ENOSYS;
	return 0;
}

__asm__(".symver sr_legacy_list,ibv_get_device_list@IBVERBS_1.0");
OLD(free_device_list);
OLD(get_device_name);
OLD(get_device_guid);
OLD(open_device);
OLD(close_device);
OLD(get_async_event);
OLD(ack_async_event);
OLD(query_device);
OLD(query_port);
OLD(query_gid);
OLD(query_pkey);
OLD(alloc_pd);
OLD(dealloc_pd);
OLD(reg_mr);
OLD(dereg_mr);
OLD(create_cq);
OLD(resize_cq);
OLD(destroy_cq);
OLD(get_cq_event);
OLD(ack_cq_events);
OLD(create_srq);
OLD(modify_srq);
OLD(query_srq);
OLD(destroy_srq);
OLD(create_qp);
OLD(query_qp);
OLD(modify_qp);
OLD(destroy_qp);
OLD(create_ah);
OLD(destroy_ah);
OLD(attach_mcast);
OLD(detach_mcast);
