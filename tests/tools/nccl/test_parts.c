/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations by any of their names; NCCL's numbers of types and reductions; layouts that hold
 * together. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/job/payload.h"
#include "tools/nccl/operation.h"

static void check_names(void)
{
	CHECK(nccl_operation_find("all_reduce") == nccl_operation_find("allreduce"));
	CHECK(nccl_operation_find("all_reduce_perf") == nccl_operation_find("all_reduce"));
	CHECK(nccl_operation_find("reduce_scatter_perf") == nccl_operation_find("reducescatter"));
	CHECK(nccl_operation_find("reduce") &&
	      nccl_operation_find("reduce") != nccl_operation_find("reduce_scatter"));
	CHECK(!nccl_operation_find("perf") && !nccl_operation_find("") &&
	      !nccl_operation_find("all"));
	CHECK(!nccl_operation_find("a_name_that_is_much_longer_than_any_operation_has"));
}

/* From nccl.h: ncclInt8 0, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64, ncclFloat16,
 * ncclFloat32, ncclFloat64, ncclBfloat16 9; ncclSum 0, ncclProd, ncclMax, ncclMin, ncclAvg 4. */
static void check_numbers(void)
{
	static const char *const types[] = { "int8",   "uint8", "int32", "uint32", "int64",
					     "uint64", "half",  "float", "double", "bfloat16" };

	for (int i = 0; i < 10; i++)
		CHECK(ha_datatype_find(types[i]) && nccl_type_of(ha_datatype_find(types[i])) == i);
	CHECK(HA_SUM == 0 && HA_PROD == 1 && HA_MAX == 2 && HA_MIN == 3 && HA_AVG == 4);
}

/* Every segment of an expected result lies in the receive buffer, and what it is made of in the
 * send buffers. */
static void check_layout(const struct nccl_operation *op, int ranks, int root)
{
	const struct ha_layout *layout = op->layout;
	size_t count = ha_layout_count(layout, ranks, 1000, 4),
	       block = ha_layout_block(layout, ranks, count), seen;
	struct ha_segment s;

	CHECK(count && block && count <= 250);
	for (int rank = 0; rank < ranks; rank++) {
		struct ha_extent x = { rank, ranks, root, block };
		size_t send = (size_t)layout->send_blocks(ranks) * block,
		       recv = (size_t)layout->recv_blocks(ranks) * block;
		size_t send_at, recv_at;

		seen = 0;
		for (int k = 0; layout->segment(&x, k, &s); k++) {
			CHECK(s.at + s.count <= recv && s.from + s.count <= send && s.rank < ranks);
			CHECK((s.rank < 0) == layout->reduces);
			seen += s.count;
		}
		CHECK(seen == recv || (layout->rooted && rank != root && !seen));
		layout->overlap(&x, &send_at, &recv_at);
		if (layout->in_place)
			CHECK(send_at + send <= (send > recv ? send : recv) &&
			      recv_at + recv <= (send > recv ? send : recv));
	}
}

int main(void)
{
	check_names();
	check_numbers();
	for (int i = 0; i < nccl_operations_count; i++)
		for (int ranks = 1; ranks <= 5; ranks++)
			check_layout(&nccl_operations[i], ranks, ranks - 1);
	return 0;
}
