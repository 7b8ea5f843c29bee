/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/switch/switchd/predict.h"

#include <sys/mman.h>

/* A rank's number in a packet may be anything: what it leads to has another rank. */
#define ROWS_BYTES \
	(INA_PREDICT_ROWS * sizeof(ina_prediction_row) + UINT8_MAX * sizeof(struct ina_prediction))

/* Everything up to the header's end but exponent, slot and psn. */
static const uint8_t masks[2][INA_PREDICT_BYTES] = {
	{ [0 ... INA_WIRE_AT + 3] = 0xff },
	{ [0 ... INA_WIRE_AT + 1] = 0xff,
	  [INA_WIRE_AT + 3 ... INA_WIRE_AT + INA_EXTENSION_BYTES + 3] = 0xff },
};

void ina_predict_head(struct ina_prediction *p, const uint8_t *packet, bool extended)
{
	memcpy(p->mask, masks[extended], sizeof(p->mask));
	for (unsigned i = 0; i < INA_PREDICT_BYTES; i++)
		p->head[i] = packet[i] & p->mask[i];
}

ina_prediction_row *ina_predictions_open(void)
{
	void *rows = mmap(NULL, ROWS_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return rows == MAP_FAILED ? NULL : rows;
}

void ina_predictions_close(ina_prediction_row *rows)
{
	if (rows)
		munmap(rows, ROWS_BYTES);
}
