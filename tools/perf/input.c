/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/job/fault.h"
#include "tools/perf/input.h"

#define LARGEST_ELEMENT 8

/*
 * Bytes before the tensors' data. .npy (NEP 1): magic, version, then the length of the header, 2
 * bytes in version 1 and 4 later. .safetensors: 8 bytes of length, then so much JSON. Little-endian
 * both.
 */
static size_t header_bytes(const unsigned char *file, size_t bytes)
{
	uint64_t length = 0;

	if (bytes >= 12 && !memcmp(file, "\x93NUMPY", 6)) {
		memcpy(&length, file + 8, file[6] == 1 ? 2 : 4);
		length += file[6] == 1 ? 10 : 12;
	} else if (bytes >= 10 && file[8] == '{') {
		memcpy(&length, file, sizeof(length));
		/* the JSON may be padded with spaces; anything else is some other file */
		if (length < 2 || length > bytes - 8 ||
		    (file[8 + length - 1] != '}' && file[8 + length - 1] != ' '))
			length = 0;
		else
			length += 8;
	}
	return length < bytes ? (size_t)length : 0;
}

int ha_input_open(struct ha_input *input, const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC), err = 0;
	size_t header;
	struct stat st;

	*input = (struct ha_input) { 0 };
	if (fd < 0 || fstat(fd, &st)) {
		err = ha_fault(-errno, "--input %s: %s", name, strerror(errno));
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		err = ha_fault(
			-EINVAL,
			"--input %s: not a regular file; give a raw, .npy or .safetensors file",
			name);
		goto out;
	}
	if (st.st_size < LARGEST_ELEMENT) {
		err = ha_fault(-EINVAL, "--input %s: needs at least %d bytes", name,
			       LARGEST_ELEMENT);
		goto out;
	}
	input->map_bytes = (size_t)st.st_size;
	input->map = mmap(NULL, input->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (input->map == MAP_FAILED) {
		input->map = NULL;
		err = ha_fault(-errno, "--input %s: %s", name, strerror(errno));
		goto out;
	}
	header = header_bytes(input->map, input->map_bytes);
	input->data = (const char *)input->map + header;
	input->bytes = input->map_bytes - header;
	if (input->bytes < LARGEST_ELEMENT)
		err = ha_fault(-EINVAL, "--input %s: needs at least %d bytes of data", name,
			       LARGEST_ELEMENT);
out:
	if (fd >= 0)
		close(fd);
	return err;
}

void ha_input_close(struct ha_input *input)
{
	if (input->map)
		munmap(input->map, input->map_bytes);
	*input = (struct ha_input) { 0 };
}
