/* SPDX-License-Identifier: BSD-3-Clause */
/* The 16-bit floats against arithmetic in double, all of them; a few reductions by hand. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/job/datatype.h"

/* What the bits mean, by the definition: sign, `bits` of fraction, the rest exponent. */
static double decode_value(uint16_t x, int bits, int bias)
{
	int exponent = (x & 0x7fff) >> bits, fraction = x & ((1 << bits) - 1);
	double value = exponent ? ldexp((1 << bits) + fraction, exponent - bias - bits)
				: ldexp(fraction, 1 - bias - bits);

	return x & 0x8000 ? -value : value;
}

static void check_format(int bits, int bias, float (*decode)(uint16_t), uint16_t (*encode)(float))
{
	uint16_t infinity = (uint16_t)((1u << 15) - (1u << bits));

	for (uint32_t x = 0; x < 65536; x++) {
		uint16_t h = (uint16_t)x;

		if ((h & 0x7fff) > infinity) {
			CHECK(isnan(decode(h)) && isnan(decode(encode(decode(h)))));
			continue;
		}
		if ((h & 0x7fff) == infinity) {
			CHECK(isinf(decode(h)) && encode(decode(h)) == h);
			continue;
		}
		CHECK((double)decode(h) == decode_value(h, bits, bias));
		CHECK(encode(decode(h)) == h);
		/* halfway to the next: to the even one; beside it: to the nearer one */
		if ((h & 0x7fff) + 1 < infinity) {
			float middle = (float)((decode_value(h, bits, bias) +
						decode_value((uint16_t)(h + 1), bits, bias)) /
					       2);

			CHECK(encode(middle) == (h & 1 ? h + 1 : h));
			CHECK(encode(nextafterf(middle, 0)) == h);
			CHECK(encode(nextafterf(middle, h & 0x8000 ? -INFINITY : INFINITY)) ==
			      h + 1);
		}
	}
}

static void check_integers(void)
{
	int8_t a[3] = { 100, -128, -3 }, b[3] = { 100, -1, 2 }, c[3];
	uint8_t ua[1] = { 200 }, ub[1] = { 100 }, uc[1];
	const struct ha_datatype *int8 = ha_datatype_find("int8"),
				 *uint8 = ha_datatype_find("uint8");

	int8->reduce(HA_SUM, c, a, b, 3);
	CHECK(c[0] == -56 && c[1] == 127 && c[2] == -1);
	int8->reduce(HA_MAX, c, a, b, 3);
	CHECK(c[0] == 100 && c[1] == -1 && c[2] == 2);
	int8->reduce(HA_MIN, c, a, b, 3);
	CHECK(c[0] == 100 && c[1] == -128 && c[2] == -3);
	int8->reduce(HA_PROD, c, a, b, 3);
	CHECK(c[0] == 16 && c[1] == -128 && c[2] == -6);
	int8->divide(c, 3, 4);
	CHECK(c[0] == 4 && c[1] == -32 && c[2] == -1);
	uint8->reduce(HA_MAX, uc, ua, ub, 1);
	CHECK(uc[0] == 200);
	uint8->reduce(HA_AVG, uc, ua, ub, 1);
	CHECK(uc[0] == 44);
}

int main(void)
{
	check_format(10, 15, ha_half_decode, ha_half_encode);
	check_format(7, 127, ha_bfloat16_decode, ha_bfloat16_encode);
	check_integers();
	CHECK(!ha_datatype_find("quad") && ha_redop_find("xor") < 0 &&
	      ha_redop_find("avg") == HA_AVG);
	return 0;
}
