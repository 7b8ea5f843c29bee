/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/port/steer.h"

#include "ina/frame/frame.h"

#include <errno.h>
#include <rte_flow.h>
#include <stdio.h>

#define DSCP_MASK 0xfc

static struct rte_flow *create_rule(const struct ina_port *p, uint8_t protocol, uint8_t worker,
				    uint16_t queue, struct rte_flow_error *error)
{
	struct rte_flow_item_ipv4 spec = { .hdr = { .type_of_service = (uint8_t)(worker << 2),
						    .next_proto_id = protocol } };
	struct rte_flow_item_ipv4 mask = { .hdr = { .type_of_service = DSCP_MASK,
						    .next_proto_id = 0xff } };
	struct rte_flow_action_queue to = { .index = queue };
	struct rte_flow_item pattern[] = {
		{ .type = RTE_FLOW_ITEM_TYPE_ETH },
		{ .type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &spec, .mask = &mask },
		{ .type = RTE_FLOW_ITEM_TYPE_END },
	};
	struct rte_flow_action action[] = {
		{ .type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to },
		{ .type = RTE_FLOW_ACTION_TYPE_END },
	};
	struct rte_flow_attr ingress = { .ingress = 1 };

	if (rte_flow_validate(p->id, &ingress, pattern, action, error))
		return NULL;
	return rte_flow_create(p->id, &ingress, pattern, action, error);
}

int ina_steer_open(const struct ina_port *p, unsigned first, unsigned workers, char *why,
		   size_t size)
{
	static const uint8_t protocol[] = { INA_PROTOCOL_OLD, INA_PROTOCOL_EXTENDED };
	struct rte_flow_error error = { 0 };

	if (first + workers > p->rx_queues || workers > INA_WORKERS_MAX) {
		snprintf(why, size, "%s has %u queues, %u are needed", p->name, p->rx_queues,
			 first + workers);
		return -ENOTSUP;
	}
	for (unsigned w = 0; w < workers; w++)
		for (unsigned i = 0; i < sizeof(protocol); i++)
			if (!create_rule(p, protocol[i], (uint8_t)w, (uint16_t)(first + w),
					 &error)) {
				snprintf(why, size, "%s (%s) cannot steer by DSCP: %s", p->name,
					 p->driver,
					 error.message ? error.message
						       : "the driver has no flow rules");
				if (w || i)
					ina_steer_close(p);
				return -ENOTSUP;
			}
	return 0;
}

void ina_steer_close(const struct ina_port *p)
{
	struct rte_flow_error error;

	rte_flow_flush(p->id, &error);
}
