/* SPDX-License-Identifier: BSD-3-Clause */
/* ha-switch: options, and then the switch. */
#include "base/config.h"
#include "base/log.h"
#include "ina/switch/switchd/switchd.h"

int main(int argc, char **argv)
{
	static struct ina_switch_options options;
	static struct ina_switchd s;
	struct ha_config config;
	int rc;

	ha_config_load_env(&config);
	if (config.debug < 2)
		ha_log_configure(NULL, NULL, 2);
	rc = ina_options_parse(&options, argc, argv);
	if (rc)
		return rc - 1;
	rc = ina_switchd_open(&s, &options);
	if (rc)
		return rc;
	rc = ina_switchd_run(&s);
	ina_switchd_close(&s);
	return rc;
}
