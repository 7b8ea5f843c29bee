/* SPDX-License-Identifier: BSD-3-Clause */
#include "softcuda/machine.h"

#include "base/hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_DEVICES 8u
#define DEFAULT_MEMORY (16ull << 30)
#define SMALLEST_MEMORY (64ull << 20)
#define LARGEST_MEMORY (1ull << 40) /* 32 of them still fit into an address space of 47 bits */
#define FIRST_DOMAIN 0x5cdau        /* a number that no machine is known to use */

static const char *describe_wrong_value(const char *name, const char *value, const char *expected)
{
	static _Thread_local char line[256];

	snprintf(line, sizeof(line), "%s=%.64s is not %s", name, value, expected);
	return line;
}

/* A decimal number without sign; *end: the first character after it. */
static bool parse_digits(const char *text, uint64_t *value, const char **end)
{
	if (*text < '0' || *text > '9')
		return false;
	char *stop;
	errno = 0;
	unsigned long long parsed = strtoull(text, &stop, 10);
	if (errno != 0)
		return false;
	*value = parsed;
	*end = stop;
	return true;
}

static const char *read_count(const char *name, unsigned least, unsigned most, unsigned *value)
{
	const char *text = getenv(name);
	if (text == NULL || *text == '\0')
		return NULL;
	uint64_t parsed;
	const char *end;
	bool valid = parse_digits(text, &parsed, &end) && *end == '\0' && parsed >= least &&
		     parsed <= most;
	if (!valid) {
		char expected[64];
		snprintf(expected, sizeof(expected), "a number from %u to %u", least, most);
		return describe_wrong_value(name, text, expected);
	}
	*value = (unsigned)parsed;
	return NULL;
}

/* Bits that a size's suffix stands for, or -1. */
static int find_size_shift(const char *suffix)
{
	static const struct {
		const char *suffix;
		int shift;
	} known[] = { { "", 0 }, { "K", 10 }, { "M", 20 }, { "G", 30 } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(suffix, known[i].suffix) == 0)
			return known[i].shift;
	return -1;
}

static const char *read_memory(uint64_t *value)
{
	static const char expected[] = "a size from 64M to 1024G (suffixes K, M, G)";
	const char *text = getenv("SOFTCUDA_MEMORY");
	if (text == NULL || *text == '\0')
		return NULL;
	uint64_t parsed;
	const char *end;
	if (!parse_digits(text, &parsed, &end))
		return describe_wrong_value("SOFTCUDA_MEMORY", text, expected);
	int shift = find_size_shift(end);
	if (shift < 0 || parsed > LARGEST_MEMORY >> shift || parsed << shift < SMALLEST_MEMORY)
		return describe_wrong_value("SOFTCUDA_MEMORY", text, expected);
	*value = (parsed << shift) & ~(uint64_t)0xfff;
	return NULL;
}

/*
 * NCCL looks a GPU's address up in /sys: with a real device behind it, it would take over that
 * device's place.
 */
static uint32_t find_free_domain(void)
{
	for (uint32_t domain = FIRST_DOMAIN; domain < 0xffff; domain++) {
		char path[64];
		snprintf(path, sizeof(path), "/sys/class/pci_bus/%04x:01", domain);
		if (access(path, F_OK) != 0)
			return domain;
	}
	return FIRST_DOMAIN;
}

const char *read_machine(struct machine *machine)
{
	*machine = (struct machine) { .devices = DEFAULT_DEVICES, .memory = DEFAULT_MEMORY };
	const char *wrong =
		read_count("SOFTCUDA_DEVICES", 1, MACHINE_DEVICES_MAX, &machine->devices);
	if (wrong == NULL)
		wrong = read_count("SOFTCUDA_NVLINK", 0, MACHINE_NVLINKS_MAX, &machine->nvlinks);
	if (wrong == NULL)
		wrong = read_count("SOFTCUDA_YIELD_NAP_US", 0, MACHINE_NAP_US_MAX,
				   &machine->yield_nap_us);
	if (wrong == NULL)
		wrong = read_memory(&machine->memory);
	if (wrong == NULL)
		machine->pci_domain = find_free_domain();
	return wrong;
}

struct machine_pci find_machine_pci(const struct machine *machine, unsigned number)
{
	return (struct machine_pci) { .domain = machine->pci_domain,
				      .bus = number + 1,
				      .device = 0 };
}

int find_machine_device(const struct machine *machine, const char *pci_id)
{
	unsigned domain, bus, device, function;
	char rest;
	if (sscanf(pci_id, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device, &function, &rest) != 4)
		return -1;
	if (domain != machine->pci_domain || device != 0 || function != 0)
		return -1;
	if (bus < 1 || bus > machine->devices)
		return -1;
	return (int)bus - 1;
}

void make_machine_uuid(const struct machine *machine, unsigned number, unsigned char uuid[16])
{
	char host[65] = "";
	gethostname(host, sizeof(host) - 1);
	uint64_t halves[2];
	for (unsigned i = 0; i < 2; i++) {
		halves[i] = ha_hash_text(HA_HASH_START + i, host);
		halves[i] =
			ha_hash_bytes(halves[i], &machine->pci_domain, sizeof(machine->pci_domain));
		halves[i] = ha_hash_bytes(halves[i], &number, sizeof(number));
	}
	memcpy(uuid, halves, sizeof(halves));
}
