/* SPDX-License-Identifier: BSD-3-Clause */
/* ip.h - a frame up to the end of its IPv4 header: where it lies, and whether it is sound */
#ifndef INA_IP_H
#define INA_IP_H

#include "ina/frame/frame.h"

#include <string.h>

#define INA_WIRE static inline __attribute__((always_inline))

#define INA_WIRE_IPV4 0x0800
#define INA_WIRE_MIN 60 /* what is shorter comes padded */
#define INA_WIRE_FCS 4  /* some NICs leave it on */
#define INA_WIRE_IHL 0x45
#define INA_WIRE_DF 0x4000
#define INA_WIRE_TTL 64
#define INA_WIRE_IP_AT INA_ETHERNET_BYTES
#define INA_WIRE_AT (INA_WIRE_IP_AT + INA_IP_BYTES)

/*
 * RFC 1071: are the 20 bytes of a header without options sound, with the checksum among them? The
 * sum of ones' complement does not care how bytes lie, nor how many are added at once: halves are
 * added up to their upper one, with what that carries.
 */
INA_WIRE bool ina_wire_checks(const uint8_t *ip)
{
	uint64_t first, second, sum;
	uint32_t last, half;

	memcpy(&first, ip, sizeof(first));
	memcpy(&second, ip + 8, sizeof(second));
	memcpy(&last, ip + 16, sizeof(last));
	sum = first + second;
	sum += sum < first;
	sum += last;
	sum += sum < last;
	sum += sum << 32 | sum >> 32;
	half = (uint32_t)(sum >> 32);
	half += half << 16 | half >> 16;
	return half >> 16 == 0xffff;
}

INA_WIRE size_t ina_wire_header(bool extended)
{
	return INA_HEADER_BYTES + (extended ? INA_EXTENSION_BYTES : 0);
}

/* What is wrong with it, up to the end of the IPv4 header. */
enum ina_fault ina_wire_ip_fault(const uint8_t *b, size_t len);

#endif
