/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * withdraw.c - a window goes: from its connections, and from what the plugin itself does with it
 */
#include "plugin/rma/comm.h"

static void deregister_window(struct ha_rma_window *w, struct ha_bundle *bundle, struct ha_mr **mr,
			      unsigned nmr)
{
	if (w->number >= nmr || !mr[w->number])
		return;
	(void)ha_dereg_mr(bundle, mr[w->number]);
	mr[w->number] = NULL;
}

int ha_rma_deregister(struct ha_rma *rma, struct ha_rma_window *w)
{
	struct ha_rma_source *s;

	if (!w)
		return 0;
	pthread_mutex_lock(&rma->lock);
	TAILQ_FOREACH(s, &rma->sources, link) {
		ha_withdraw(s->recv, w->number);
		ha_rma_source_leave(s, w);
		deregister_window(w, (struct ha_bundle *)s->recv, s->mr, s->nmr);
	}
	for (int i = 0; i < rma->nranks; i++)
		if (rma->peer[i].send)
			deregister_window(w, (struct ha_bundle *)rma->peer[i].send, rma->peer[i].mr,
					  rma->peer[i].nmr);
	ha_rma_refuse_answers(rma, w);
	rma->window[w->number] = NULL;
	rma->gpu -= w->type != HA_MEM_HOST;
	pthread_mutex_unlock(&rma->lock);
	ha_rma_window_free(w);
	return 0;
}
