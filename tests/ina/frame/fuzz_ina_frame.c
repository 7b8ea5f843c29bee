/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as a network may bring them: the input is one. The last byte, if odd, mends Ethernet type
 * and checksum, so that the rest is reached. What is taken must come out of encode as it went
 * in. */
#include "base/check.h"
#include "ina/frame/bytes.h"
#include "ina/frame/frame.h"
#include "ina/frame/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend_headers(uint8_t *b)
{
	uint32_t sum = 0;

	ina_put16(b + 12, 0x0800);
	ina_put16(b + 24, 0);
	for (int i = 14; i < 34; i += 2)
		sum += ina_get16(b + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	ina_put16(b + 24, (uint16_t)~sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *heap = malloc(size ? size : 1), again[INA_FRAME_MAX];
	struct ina_frame f;
	enum ina_fault fault;

	memcpy(heap, data, size);
	if (size >= 34 && data[size - 1] & 1)
		mend_headers(heap);
	fault = ina_frame_decode(heap, size, &f);
	CHECK((unsigned)fault < INA_FAULTS);
	if (fault == INA_FAULT_NONE) {
		size_t len = ina_frame_encode(&f, again);

		CHECK(len <= size && size <= (len > 60 ? len : 60) + 4 &&
		      len == ina_wire_bytes(&f));
		CHECK(!memcmp(again, heap,
			      /* all but what encode chooses itself: identification, time to live,
			       * checksum */
			      14 + 4));
		CHECK(!memcmp(again + 20, heap + 20, 2) && again[23] == heap[23]);
		CHECK(!memcmp(again + 26, heap + 26, len - 26));
		CHECK(f.rank < INA_RANKS_MAX && f.root < INA_RANKS_MAX && f.group &&
		      f.worker < INA_WORKERS_MAX);
	}
	free(heap);
	return 0;
}
