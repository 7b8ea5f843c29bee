/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_prm.c - the firmware's commands, byte by byte
 *
 * The expected bytes were made with the field macros of infiniband/mlx5dv.h over the command
 * layouts that rdma-core and Linux publish (mlx5_ifc.h), not with our code. Bytes that are not
 * named are zero.
 */
#include "gpu/host/prm.h"
#include "tests/ina/switch/named.h"

struct byte {
	unsigned short at;
	unsigned char is;
};

static const struct byte cq_ring[] = {
	{ 0, 0x04 },  { 16, 0x02 }, { 20, 0xa1 }, { 21, 0xb2 }, { 22, 0xc3 }, { 23, 0xd4 },
	{ 28, 0x0d }, { 29, 0x12 }, { 30, 0x34 }, { 31, 0x56 }, { 39, 0x1d }, { 72, 0x11 },
	{ 73, 0x22 }, { 74, 0x33 }, { 75, 0x44 }, { 76, 0x55 }, { 77, 0x66 }, { 78, 0x77 },
	{ 79, 0x80 }, { 80, 0x01 }, { 81, 0x02 }, { 82, 0x03 }, { 83, 0x04 }, { 84, 0x05 },
	{ 85, 0x06 }, { 88, 0xe5 }, { 89, 0xf6 }, { 90, 0x07 }, { 91, 0x18 }, { 92, 0x80 },
};

static const struct byte cq_collapsed[] = {
	{ 0, 0x04 },  { 16, 0x02 }, { 17, 0x12 }, { 20, 0xa1 }, { 21, 0xb2 }, { 22, 0xc3 },
	{ 23, 0xd4 }, { 29, 0x12 }, { 30, 0x34 }, { 31, 0x56 }, { 39, 0x1d }, { 72, 0x11 },
	{ 73, 0x22 }, { 74, 0x33 }, { 75, 0x44 }, { 76, 0x55 }, { 77, 0x66 }, { 78, 0x77 },
	{ 79, 0x80 }, { 80, 0x01 }, { 81, 0x02 }, { 82, 0x03 }, { 83, 0x04 }, { 84, 0x05 },
	{ 85, 0x06 }, { 88, 0xe5 }, { 89, 0xf6 }, { 90, 0x07 }, { 91, 0x18 }, { 92, 0x80 },
};

static const struct byte qp[] = {
	{ 0, 0x05 },   { 26, 0x18 },  { 29, 0xab },  { 30, 0xcd },  { 31, 0xef },  { 34, 0x58 },
	{ 37, 0x12 },  { 38, 0x34 },  { 39, 0x56 },  { 41, 0x77 },  { 42, 0x88 },  { 43, 0x99 },
	{ 149, 0x65 }, { 150, 0x43 }, { 151, 0x21 }, { 181, 0x65 }, { 182, 0x43 }, { 183, 0x21 },
	{ 184, 0x11 }, { 185, 0x22 }, { 186, 0x33 }, { 187, 0x44 }, { 188, 0x55 }, { 189, 0x66 },
	{ 190, 0x77 }, { 196, 0x03 }, { 232, 0x10 }, { 252, 0xa1 }, { 253, 0xb2 }, { 254, 0xc3 },
	{ 255, 0xd4 }, { 256, 0x01 }, { 257, 0x02 }, { 258, 0x03 }, { 259, 0x04 }, { 260, 0x05 },
	{ 261, 0x06 }, { 264, 0xe5 }, { 265, 0xf6 }, { 266, 0x07 }, { 267, 0x18 }, { 268, 0x80 },
};

static const struct byte to_init[] = {
	{ 0, 0x05 },  { 1, 0x02 },  { 9, 0xfe },   { 10, 0xdc },  { 11, 0xba },
	{ 26, 0x18 }, { 85, 0x02 }, { 169, 0x01 }, { 170, 0xe0 },
};

static const struct byte to_rtr_ib[] = {
	{ 0, 0x05 },  { 1, 0x03 },   { 9, 0xfe },   { 10, 0xdc },  { 11, 0xba },  { 32, 0xbe },
	{ 45, 0x13 }, { 46, 0x57 },  { 47, 0x90 },  { 54, 0x43 },  { 55, 0x21 },  { 84, 0x05 },
	{ 85, 0x02 }, { 169, 0x80 }, { 172, 0x0c }, { 173, 0x24 }, { 174, 0x68 }, { 175, 0xac },
};

static const struct byte to_rtr_roce[] = {
	{ 0, 0x05 },   { 1, 0x03 },   { 9, 0xfe },   { 10, 0xdc }, { 11, 0xba },  { 32, 0xbe },
	{ 45, 0x13 },  { 46, 0x57 },  { 47, 0x90 },  { 57, 0x07 }, { 59, 0x40 },  { 60, 0x06 },
	{ 61, 0xa0 },  { 64, 0xf0 },  { 65, 0xf1 },  { 66, 0xf2 }, { 67, 0xf3 },  { 68, 0xf4 },
	{ 69, 0xf5 },  { 70, 0xf6 },  { 71, 0xf7 },  { 72, 0xf8 }, { 73, 0xf9 },  { 74, 0xfa },
	{ 75, 0xfb },  { 76, 0xfc },  { 77, 0xfd },  { 78, 0xfe }, { 79, 0xff },  { 81, 0x1a },
	{ 82, 0xc1 },  { 83, 0x23 },  { 84, 0x50 },  { 85, 0x02 }, { 86, 0x02 },  { 87, 0x03 },
	{ 88, 0x04 },  { 89, 0x05 },  { 90, 0x06 },  { 91, 0x07 }, { 169, 0x80 }, { 172, 0x0c },
	{ 173, 0x24 }, { 174, 0x68 }, { 175, 0xac },
};

static const struct byte to_rts[] = {
	{ 0, 0x05 },   { 1, 0x04 },   { 9, 0xfe },   { 10, 0xdc },  { 11, 0xba },  { 56, 0x70 },
	{ 137, 0x86 }, { 138, 0xe0 }, { 145, 0x13 }, { 146, 0x57 }, { 147, 0x9b },
};

static const struct byte to_error[] = {
	{ 0, 0x05 }, { 1, 0x07 }, { 9, 0xfe }, { 10, 0xdc }, { 11, 0xba },
};

static const struct byte to_reset[] = {
	{ 0, 0x05 }, { 1, 0x0a }, { 9, 0xfe }, { 10, 0xdc }, { 11, 0xba },
};

/* By hand from the layout of create_dct_in and dctc: the context begins at byte 16. */
static const struct byte target[] = {
	{ 0, 0x07 },  { 1, 0x10 },  { 25, 0x65 }, { 26, 0x43 }, { 27, 0x21 }, { 29, 0x1e },
	{ 34, 0x0c }, { 37, 0x13 }, { 38, 0x57 }, { 39, 0x9b }, { 41, 0xab }, { 42, 0xcd },
	{ 43, 0xef }, { 44, 0x6a }, { 48, 0x01 }, { 49, 0x23 }, { 50, 0x45 }, { 51, 0x67 },
	{ 52, 0x89 }, { 53, 0xab }, { 54, 0xcd }, { 55, 0xef }, { 56, 0x05 }, { 57, 0x02 },
	{ 61, 0x07 }, { 63, 0x40 }, { 70, 0x05 }, { 71, 0x1a },
};

static const struct byte dci_to_init[] = {
	{ 0, 0x05 },  { 1, 0x02 },  { 9, 0xfe },  { 10, 0xdc },
	{ 11, 0xba }, { 26, 0x18 }, { 85, 0x02 },
};

static void check_command(const uint8_t *in, size_t length, size_t want, const struct byte *bytes,
			  size_t n)
{
	uint8_t expect[HA_GPU_PRM_IN] = { 0 };

	CHECK_INT(length, want);
	for (size_t i = 0; i < n; i++)
		expect[bytes[i].at] = bytes[i].is;
	for (size_t i = 0; i < HA_GPU_PRM_IN; i++)
		if (in[i] != expect[i]) {
			fprintf(stderr, "byte %zu is %02x, expected %02x\n", i, in[i], expect[i]);
			exit(1);
		}
}

#define SAME(in, length, want, bytes) \
	check_command(in, length, want, bytes, sizeof(bytes) / sizeof((bytes)[0]))

static uint8_t in[HA_GPU_PRM_IN];

static void completion_queues(void)
{
	struct ha_gpu_prm_cq c = { .uar = 0x123456,
				   .eqn = 0x1d,
				   .umem = 0xe5f60718,
				   .dbr_umem = 0xa1b2c3d4,
				   .offset = 0x0102030405060000,
				   .dbr_offset = 0x1122334455667780,
				   .log = 13 };

	memset(in, 0xff, sizeof(in));
	SAME(in, ha_gpu_prm_create_cq(in, &c), 272, cq_ring);
	c.log = 0;
	SAME(in, ha_gpu_prm_create_cq(in, &c), 272, cq_collapsed);
}

static void queue_pairs(void)
{
	struct ha_gpu_prm_qp q = { .uar = 0x123456,
				   .pd = 0xabcdef,
				   .cqn = 0x654321,
				   .umem = 0xe5f60718,
				   .dbr_umem = 0xa1b2c3d4,
				   .offset = 0x0102030405060000,
				   .dbr_offset = 0x1122334455667700,
				   .log = 11,
				   .user_index = 0x778899 };

	SAME(in, ha_gpu_prm_create_qp(in, &q), 272, qp);
}

static void state_commands(void)
{
	struct ha_gpu_prm_peer p = { .qpn = 0x135790,
				     .psn = 0x2468ac,
				     .port = 2,
				     .mtu = 5,
				     .gid_index = 7,
				     .lid = 0x4321,
				     .service_level = 5,
				     .traffic_class = 0x6a,
				     .udp_port = 0xc123,
				     .mac = { 2, 3, 4, 5, 6, 7 } };

	for (unsigned i = 0; i < 16; i++)
		p.gid[i] = (uint8_t)(0xf0 + i);
	SAME(in, ha_gpu_prm_rst2init(in, 0xfedcba, 2), 272, to_init);
	SAME(in, ha_gpu_prm_init2rtr(in, 0xfedcba, &p), 272, to_rtr_ib);
	p.ethernet = true;
	SAME(in, ha_gpu_prm_init2rtr(in, 0xfedcba, &p), 272, to_rtr_roce);
	SAME(in, ha_gpu_prm_rtr2rts(in, 0xfedcba, 0x13579b, 14, 6), 272, to_rts);
	SAME(in, ha_gpu_prm_to_error(in, 0xfedcba), 16, to_error);
	SAME(in, ha_gpu_prm_to_reset(in, 0xfedcba), 16, to_reset);
}

static void dynamic_commands(void)
{
	struct ha_gpu_prm_dct d = { .pd = 0xabcdef,
				    .cqn = 0x654321,
				    .srqn = 0x13579b,
				    .key = 0x0123456789abcdef,
				    .port = 2,
				    .mtu = 5,
				    .gid_index = 7,
				    .traffic_class = 0x6a,
				    .service_level = 5,
				    .ethernet = true };
	struct ha_gpu_prm_qp q = { .dci = true };

	SAME(in, ha_gpu_prm_create_dct(in, &d), 128, target);
	SAME(in, ha_gpu_prm_dci_rst2init(in, 0xfedcba, 2), 272, dci_to_init);
	ha_gpu_prm_create_qp(in, &q);
	CHECK_INT(in[25], 5); /* the service type */
}

static void answer_fields(void)
{
	static const uint8_t out[HA_GPU_PRM_OUT] = { 0x04, 0,    0,    0,    0x12, 0x34,
						     0x56, 0x78, 0xff, 0xab, 0xcd, 0xef };

	CHECK_INT(ha_gpu_prm_number(out), 0xabcdef);
	CHECK_INT(ha_gpu_prm_status(out), 4);
	CHECK_INT(ha_gpu_prm_syndrome(out), 0x12345678);
}

static const struct named_test tests[] = {
	{ "completion_queues", completion_queues },
	{ "queue_pairs", queue_pairs },
	{ "transitions", state_commands },
	{ "dynamic", dynamic_commands },
	{ "answers", answer_fields },
};

int main(int argc, char **argv)
{
	return NAMED_TESTS_RUN(tests, argc, argv);
}
