/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of rules, and a line to the control socket's parser of rules: what is accepted must
 * survive printing and reading. */
#include "agent/rules.h"

#include "base/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ha_rules rules = { 0 }, again = { 0 };
	char why[128], *text = NULL;
	size_t len = 0;
	FILE *file;

	if (!size)
		return 0;
	file = fmemopen((void *)(uintptr_t)data, size, "r");
	CHECK(file);
	if (ha_rules_read(&rules, file, why, sizeof(why))) {
		CHECK(*why && !rules.n);
		fclose(file);
		return 0;
	}
	fclose(file);
	file = open_memstream(&text, &len);
	ha_rules_print(&rules, file);
	fclose(file);
	if (len) {
		file = fmemopen(text, len, "r");
		CHECK(!ha_rules_read(&again, file, why, sizeof(why)));
		fclose(file);
	}
	CHECK_INT(again.n, rules.n);
	for (size_t i = 0; i < rules.n; i++) {
		const struct ha_rule *r = &rules.rule[i];

		CHECK(r->share <= 1024 && r->src_len <= 32 && r->dst_len <= 32);
		CHECK(!memcmp(r, &again.rule[i], sizeof(*r)));
	}
	free(text);
	ha_rules_free(&rules);
	ha_rules_free(&again);
	return 0;
}
