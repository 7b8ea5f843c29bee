/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the structures and numbers of include/hawser/ina.h for test_layouts.py, which holds
 * ina/python/netccl/capi.py against them. */
#include "include/hawser/ina.h"

#include <stdio.h>

#define FIELD(type, name)                                                          \
	printf("field %s %s %zu %zu\n", #type, #name, offsetof(struct type, name), \
	       sizeof(((struct type *)0)->name))
#define SIZE(type) printf("size %s %zu\n", #type, sizeof(struct type))
#define NUMBER(name) printf("number %s %lld\n", #name, (long long)(name))

int main(void)
{
	FIELD(ha_ina_options, backend);
	FIELD(ha_ina_options, buffer);
	FIELD(ha_ina_options, loopback);
	FIELD(ha_ina_options, give_up);
	SIZE(ha_ina_options);
	FIELD(ha_ina_request, coll);
	FIELD(ha_ina_request, type);
	FIELD(ha_ina_request, root);
	FIELD(ha_ina_request, bytes);
	FIELD(ha_ina_request, in);
	FIELD(ha_ina_request, out);
	FIELD(ha_ina_request, memory);
	FIELD(ha_ina_request, stream);
	SIZE(ha_ina_request);
	NUMBER(HA_INA_SEGMENT);
	NUMBER(HA_INA_RANKS);
	NUMBER(HA_INA_TICKET);
	NUMBER(HA_INA_ALL_REDUCE);
	NUMBER(HA_INA_REDUCE);
	NUMBER(HA_INA_BROADCAST);
	NUMBER(HA_INA_REDUCE_SCATTER);
	NUMBER(HA_INA_ALL_GATHER);
	NUMBER(HA_INA_BARRIER);
	NUMBER(HA_INA_BYTES);
	NUMBER(HA_INA_INT32);
	NUMBER(HA_INA_FLOAT32);
	NUMBER(HA_INA_HOST);
	NUMBER(HA_INA_CUDA);
	NUMBER(HA_INA_SATURATED);
	NUMBER(HA_INA_NONFINITE);
	return 0;
}
