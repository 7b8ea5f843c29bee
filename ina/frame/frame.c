/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/frame.h"

#include "ina/frame/wire.h"

const char *ina_fault_name(enum ina_fault fault, const char **help)
{
	static const char *const table[INA_FAULTS][2] = {
#define X(id, name, help) { name, help },
		INA_FAULT_LIST(X)
#undef X
	};
	bool known = (unsigned)fault < INA_FAULTS;

	if (help)
		*help = known ? table[fault][1] : "?";
	return known ? table[fault][0] : "?";
}

enum ina_fault ina_frame_decode(const void *bytes, size_t len, struct ina_frame *f)
{
	return ina_wire_decode(bytes, len, f);
}

size_t ina_frame_encode(const struct ina_frame *f, void *bytes)
{
	size_t head = ina_wire_encode_head(f, true, bytes);

	if (!f->words)
		return head;
	memcpy((uint8_t *)bytes + head, f->words, INA_PAYLOAD_BYTES);
	return head + INA_PAYLOAD_BYTES;
}
