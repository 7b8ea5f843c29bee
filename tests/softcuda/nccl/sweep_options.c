/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/softcuda/nccl/sweep_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sweep_operation_names[OPERATION_COUNT] = {
	"all_reduce", "all_gather", "reduce_scatter", "reduce", "broadcast", "alltoall", "gatherv"
};

static void parse_sizes(struct sweep_options *options, char *text)
{
	options->size_count = 0;
	for (char *word = strtok(text, ","); word && options->size_count < LIST_MAX;
	     word = strtok(NULL, ","))
		options->sizes[options->size_count++] = strtoul(word, NULL, 10);
}

/* Which of `count` things are wanted. */
static void parse_numbers(bool *wanted, size_t count, char *text)
{
	memset(wanted, 0, count * sizeof(*wanted));
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ","))
		wanted[strtoul(word, NULL, 10) % count] = true;
}

static void parse_operations(struct sweep_options *options, char *text)
{
	memset(options->operations, 0, sizeof(options->operations));
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		for (int o = 0; o < OPERATION_COUNT; o++)
			options->operations[o] |= strcmp(word, sweep_operation_names[o]) == 0;
	}
}

static void use_defaults(struct sweep_options *options)
{
	static const size_t sizes[] = { 1, 3, 1000, 100003 };

	options->ranks = 2;
	options->gpus = 1;
	options->repeat = 1;
	options->group = 1;
	options->size_count = 4;
	memcpy(options->sizes, sizes, sizeof(sizes));
	memset(options->operations, 1, sizeof(options->operations));
	memset(options->types, 1, sizeof(options->types));
	memset(options->operators, 1, sizeof(options->operators));
}

static bool parse_option(struct sweep_options *options, const char *name, char *value)
{
	if (strcmp(name, "--ranks") == 0)
		options->ranks = atoi(value);
	else if (strcmp(name, "--gpus") == 0)
		options->gpus = atoi(value);
	else if (strcmp(name, "--hosts") == 0)
		options->hosts = atoi(value);
	else if (strcmp(name, "--repeat") == 0)
		options->repeat = atoi(value);
	else if (strcmp(name, "--group") == 0)
		options->group = atoi(value);
	else if (strcmp(name, "--sizes") == 0)
		parse_sizes(options, value);
	else if (strcmp(name, "--types") == 0)
		parse_numbers(options->types, ELEMENT_TYPE_COUNT, value);
	else if (strcmp(name, "--operators") == 0)
		parse_numbers(options->operators, OPERATORS, value);
	else if (strcmp(name, "--operations") == 0)
		parse_operations(options, value);
	else
		return false;
	return true;
}

void sweep_parse_options(struct sweep_options *options, int argc, char **argv)
{
	use_defaults(options);
	if (argc > 1)
		options->library = argv[1];
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--register") == 0) {
			options->registered = true;
			continue;
		}
		if (i + 1 == argc || !parse_option(options, argv[i], argv[i + 1])) {
			fprintf(stderr, "sweep_nccl: unknown option %s\n", argv[i]);
			exit(2);
		}
		i++;
	}
	if (!options->hosts)
		options->hosts = options->ranks / options->gpus;
	if (!options->library || options->ranks > RANKS_MAX || options->gpus > GPUS_MAX ||
	    options->ranks % options->gpus || options->ranks / options->gpus % options->hosts) {
		fprintf(stderr, "usage: sweep_nccl LIBNCCL [--ranks N] [--gpus N] [--hosts N] ...; "
				"see the source\n");
		exit(2);
	}
}
