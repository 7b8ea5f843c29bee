#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A NETCCL_ variable that nobody reads is a warning; the ones that netccl knows are those of the documents. test_names.py PACKAGES CONFIGURATION.MD"""

import importlib
import os
import re
import sys
import types
import warnings

package = types.ModuleType("netccl")  # its modules without what it does when it is imported: that needs torch
package.__path__ = [os.path.join(sys.argv[1], "netccl")]
sys.modules["netccl"] = package
client = importlib.import_module("netccl.client")

documented = set(re.findall(r"^\| `(NETCCL_[A-Z_]+)`", open(sys.argv[2], encoding="utf-8").read(), re.M))
assert documented == set(client.VARIABLES), documented ^ set(client.VARIABLES)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    client.check_names({"NETCCL_QUANT": "block", "NETCCL_RETRY_OP": "3", "NETCCL_ABCDEFGH": "1", "PATH": "/bin"})
lines = [str(w.message) for w in said]
assert len(lines) == 2, lines
assert lines[0].startswith("NETCCL_ABCDEFGH is set, but there is no such variable; docs/configuration.md"), lines
assert "NETCCL_RETRY_OP is set, but there is no such variable; did you mean NETCCL_RETRY_OPS" in lines[1], lines
