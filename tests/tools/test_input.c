/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the data of a file begins. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/perf/input.h"

static int failures;

/* A file with these bytes must open with its data at `at` (-1: must be refused). */
static void check_file(const char *what, const char *bytes, size_t size, long at)
{
	char name[] = "/tmp/ha-test-input-XXXXXX";
	struct ha_input input;
	int fd = mkstemp(name), err;

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
		printf("%s: cannot write %s\n", what, name);
		exit(1);
	}
	close(fd);
	ha_fault_clear();
	err = ha_input_open(&input, name);
	unlink(name);
	if (at < 0 ? !err
		   : err || (const char *)input.data - (const char *)input.map != at ||
			     input.bytes != size - (size_t)at) {
		printf("%s: error %d, data at %ld\n", what, err,
		       (long)((const char *)input.data - (const char *)input.map));
		failures++;
	}
	if (err && !ha_fault_text()[0]) {
		printf("%s: refused without a reason\n", what);
		failures++;
	}
	ha_input_close(&input);
}

int main(void)
{
	check_file("raw", "0123456789abcdef", 16, 0);
	check_file("short", "0123456", 7, -1);
	check_file("empty", "", 0, -1);
	check_file("npy 1", "\x93NUMPY\x01\x00\x06\x00{...}\n01234567", 24, 16);
	check_file("npy 2", "\x93NUMPY\x02\x00\x04\x00\x00\x00{..}01234567", 24, 16);
	check_file("npy without data", "\x93NUMPY\x01\x00\x06\x00{...}\n0123", 20, -1);
	check_file("npy with a long header is raw", "\x93NUMPY\x01\x00\xff\xff{...}\n01234567", 24,
		   0);
	check_file("safetensors", "\x04\0\0\0\0\0\0\0{..}01234567", 20, 12);
	check_file("safetensors, padded", "\x05\0\0\0\0\0\0\0{..} 01234567", 21, 13);
	check_file("not quite safetensors", "\x04\0\0\0\0\0\0\0{..x01234567", 20, 0);
	check_file("safetensors with a long header is raw",
		   "\xff\xff\xff\xff\xff\xff\xff\xff{..}01234567", 20, 0);
	check_file("safetensors with an empty header is raw", "\0\0\0\0\0\0\0\0{..}01234567", 20,
		   0);
	return failures != 0;
}
