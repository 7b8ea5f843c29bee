/* SPDX-License-Identifier: BSD-3-Clause */
#include "ina/frame/ip.h"

#include "ina/frame/bytes.h"

enum ina_fault ina_wire_ip_fault(const uint8_t *b, size_t len)
{
	const uint8_t *ip = b + INA_WIRE_IP_AT;
	size_t total, bare;

	if (len < INA_WIRE_IP_AT)
		return INA_FAULT_SHORT;
	if (ina_get16(b + 12) != INA_WIRE_IPV4)
		return INA_FAULT_NOT_OURS;
	if (len < INA_WIRE_AT)
		return INA_FAULT_SHORT;
	if (ip[9] != INA_PROTOCOL_OLD && ip[9] != INA_PROTOCOL_EXTENDED)
		return INA_FAULT_NOT_OURS;
	if (ip[0] != INA_WIRE_IHL || !ip[8])
		return INA_FAULT_IP;
	if (!ina_wire_checks(ip))
		return INA_FAULT_CHECKSUM;
	if (ina_get16(ip + 6) != INA_WIRE_DF)
		return INA_FAULT_FRAGMENT;
	total = ina_get16(ip + 2);
	bare = INA_IP_BYTES + ina_wire_header(ip[9] == INA_PROTOCOL_EXTENDED);
	if (total > len - INA_WIRE_IP_AT || (total != bare && total != bare + INA_PAYLOAD_BYTES))
		return INA_FAULT_LENGTH;
	if (len > INA_WIRE_IP_AT + total + INA_WIRE_FCS && len > INA_WIRE_MIN + INA_WIRE_FCS)
		return INA_FAULT_LENGTH;
	return INA_FAULT_NONE;
}
