/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/under_nccl/communicators/cables.h"

#include "tests/under_nccl/communicators/nics.h"

static unsigned random_below(unsigned below)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(state >> 33) % below;
}

void cables_cut_one(struct ranks *ranks, const struct cables_pace *pace)
{
	for (int i = 0; i < 8; i++) {
		int rank = (int)random_below((unsigned)ranks->count), nic = (int)random_below(2);

		ranks_await_rounds(ranks, rank, pace->least + random_below(pace->before));
		nic_cut(ranks->pid[rank], nic);
		ranks_await_rounds(ranks, rank, pace->least + random_below(pace->during));
		nic_heal(ranks->pid[rank], nic);
	}
}

void cables_cut_switch(struct ranks *ranks, const struct cables_pace *pace)
{
	for (int i = 0; i < 4; i++) {
		int nic = i % 2;

		ranks_await_rounds(ranks, 0, pace->least + random_below(pace->before));
		for (int r = 0; r < ranks->count; r++)
			nic_cut(ranks->pid[r], nic);
		for (int r = 0; r < ranks->count; r++)
			ranks_await_rounds(ranks, r, pace->during);
		for (int r = 0; r < ranks->count; r++)
			nic_heal(ranks->pid[r], nic);
	}
}
