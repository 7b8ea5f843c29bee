/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay.c - a fuzz harness without libFuzzer: each input of the folders, then that input changed
 * in some small ways, the same ones each time
 *
 * For `make check`, in the build of AddressSanitizer; libFuzzer itself, which looks for new ways,
 * is the stage "fuzz" of `make check-long`. What the harness has in hand when a sanitizer ends it
 * is in the file "input" of the current folder.
 */
#include "base/check.h"
#include "base/rng.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGED 100 /* of each input */
#define RANDOM_BYTES 512
#define SIZE_MAX_BYTES 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

struct input {
	uint8_t bytes[2 * SIZE_MAX_BYTES];
	size_t size;
};

static unsigned long ran;

/* The harness gets a copy of its own of just that size, so that a byte too far is seen. */
static void run_input(const struct input *in)
{
	uint8_t *copy = malloc(in->size ? in->size : 1);
	FILE *file = fopen("input", "w");

	CHECK(copy && file);
	memcpy(copy, in->bytes, in->size);
	CHECK(fwrite(in->bytes, 1, in->size, file) == in->size);
	CHECK(!fclose(file));
	LLVMFuzzerTestOneInput(copy, in->size);
	free(copy);
	ran++;
}

static void flip_bit(struct input *in, struct sr_rng *rng)
{
	if (in->size)
		in->bytes[sr_rng_below(rng, in->size)] ^= (uint8_t)(1u << sr_rng_below(rng, 8));
}

static void set_byte(struct input *in, struct sr_rng *rng)
{
	static const uint8_t edges[] = { 0, 1, 0x7f, 0x80, 0xfe, 0xff, ' ', '\n' };

	if (in->size)
		in->bytes[sr_rng_below(rng, in->size)] = edges[sr_rng_below(rng, sizeof(edges))];
}

static void cut_end(struct input *in, struct sr_rng *rng)
{
	in->size = sr_rng_below(rng, in->size + 1);
}

static void remove_part(struct input *in, struct sr_rng *rng)
{
	size_t from = sr_rng_below(rng, in->size + 1);
	size_t len = sr_rng_below(rng, in->size - from + 1);

	memmove(in->bytes + from, in->bytes + from + len, in->size - from - len);
	in->size -= len;
}

static void repeat_part(struct input *in, struct sr_rng *rng)
{
	size_t from = sr_rng_below(rng, in->size + 1);
	size_t len = sr_rng_below(rng, in->size - from + 1);

	if (in->size + len > SIZE_MAX_BYTES)
		return;
	memmove(in->bytes + from + len, in->bytes + from, in->size - from);
	in->size += len;
}

static void change(struct input *in, struct sr_rng *rng)
{
	static void (*const ways[])(struct input *, struct sr_rng *) = {
		flip_bit, set_byte, cut_end, remove_part, repeat_part,
	};

	for (uint64_t n = 1 + sr_rng_below(rng, 3); n; n--)
		ways[sr_rng_below(rng, sizeof(ways) / sizeof(ways[0]))](in, rng);
}

static void run_changed(const struct input *given)
{
	static struct input changed;
	struct sr_rng rng = { 1 };

	run_input(given);
	for (unsigned i = 0; i < CHANGED; i++) {
		changed = *given;
		change(&changed, &rng);
		run_input(&changed);
	}
}

/* For a harness without inputs of its own. */
static void run_random(void)
{
	static struct input given = { .size = RANDOM_BYTES };
	struct sr_rng rng = { 2 };

	for (size_t i = 0; i < given.size; i++)
		given.bytes[i] = (uint8_t)sr_rng_next(&rng);
	run_changed(&given);
}

static void run_file(const char *path)
{
	static struct input given;
	FILE *file = fopen(path, "r");

	if (!file) {
		perror(path);
		exit(1);
	}
	given.size = fread(given.bytes, 1, SIZE_MAX_BYTES, file);
	fclose(file);
	run_changed(&given);
}

static void run_folder(const char *folder)
{
	struct dirent **entry;
	char path[4096];
	int n = scandir(folder, &entry, NULL, alphasort);

	if (n < 0) {
		perror(folder);
		exit(1);
	}
	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry[i]->d_name);
		if (*entry[i]->d_name != '.')
			run_file(path);
		free(entry[i]);
	}
	free(entry);
}

int main(int argc, char **argv)
{
	static struct input empty;

	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	run_input(&empty);
	run_random();
	for (int i = 1; i < argc; i++)
		run_folder(argv[i]);
	printf("%lu inputs\n", ran);
	return 0;
}
