/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libibverbs of which only the fork support is of interest: ibv_fork_init counts,
 * ibv_is_fork_initialized says what the test has set. Everything else is there to be found by the
 * loader, and no test calls it.
 */
#include <errno.h>

extern int fork_status, fork_inits;
int fork_status, fork_inits;

int ibv_fork_init(void);
int ibv_fork_init(void)
{
	fork_inits++;
	return 0;
}

int ibv_is_fork_initialized(void);
int ibv_is_fork_initialized(void)
{
	return fork_status;
}

#define REFUSED(name)           \
	int ibv_##name(void);   \
	int ibv_##name(void)    \
	{                       \
		return ENOTSUP; \
	}

REFUSED(get_device_list)
REFUSED(free_device_list)
REFUSED(get_device_guid)
REFUSED(open_device)
REFUSED(close_device)
REFUSED(query_device)
REFUSED(query_port)
REFUSED(query_gid)
REFUSED(get_async_event)
REFUSED(ack_async_event)
REFUSED(alloc_pd)
REFUSED(dealloc_pd)
REFUSED(reg_mr)
REFUSED(dereg_mr)
REFUSED(create_comp_channel)
REFUSED(destroy_comp_channel)
REFUSED(create_cq)
REFUSED(destroy_cq)
REFUSED(get_cq_event)
REFUSED(ack_cq_events)
REFUSED(create_srq)
REFUSED(modify_srq)
REFUSED(query_srq)
REFUSED(destroy_srq)
REFUSED(create_qp)
REFUSED(modify_qp)
REFUSED(query_qp)
REFUSED(destroy_qp)
