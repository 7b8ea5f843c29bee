/* SPDX-License-Identifier: BSD-3-Clause */
/* faults.c - the decision for one packet; see faults.h */
#include "softroce/faults.h"

static bool draw_fault(struct sr_rng *rng, uint32_t ppm)
{
	return ppm && sr_rng_below(rng, SR_PPM) < ppm;
}

bool sr_faults_any(const struct sr_fault_dir *dir)
{
	return dir->blackhole || dir->drop_ppm || dir->dup_ppm || dir->reorder_ppm ||
	       dir->delay_ns || dir->jitter_ns;
}

struct sr_verdict sr_faults_decide(const struct sr_fault_dir *dir, struct sr_rng *rng)
{
	struct sr_verdict v = { .copies = 1 };

	if (dir->blackhole || draw_fault(rng, dir->drop_ppm)) {
		v.copies = 0;
		return v;
	}
	v.delay_ns = dir->delay_ns;
	if (dir->jitter_ns)
		v.delay_ns += sr_rng_below(rng, dir->jitter_ns + 1);
	v.delay2_ns = v.delay_ns;
	if (draw_fault(rng, dir->dup_ppm)) {
		v.copies = 2;
		if (dir->jitter_ns)
			v.delay2_ns += sr_rng_below(rng, dir->jitter_ns + 1);
	}
	if (draw_fault(rng, dir->reorder_ppm)) {
		v.reordered = true;
		v.delay_ns += dir->reorder_ns ? dir->reorder_ns : SR_REORDER_NS;
	}
	return v;
}
