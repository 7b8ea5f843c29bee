#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The wheel that `pip install ./ina/python` makes is whole: its record holds, it has every module, and the version of the programs.

test_wheel.py PYTHON-FOLDER VERSION
"""

import base64
import hashlib
import os
import re
import sys
import tempfile
import zipfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import wheel_of

with tempfile.TemporaryDirectory() as folder:
    wheel = zipfile.ZipFile(os.path.join(folder, wheel_of.build_wheel(folder)))
    assert wheel.testzip() is None
    names = wheel.namelist()
    modules = sorted("netccl/" + f for f in os.listdir(os.path.join(sys.argv[1], "netccl")) if f.endswith(".py"))
    assert modules and [n for n in names if n.endswith(".py")] == modules
    record = next(n for n in names if n.endswith("RECORD"))
    lines = [line.split(",") for line in wheel.read(record).decode().splitlines()]
    assert sorted(line[0] for line in lines) == sorted(names)
    for path, digest, size in lines:
        if path != record:
            data = wheel.read(path)
            assert len(data) == int(size)
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    wheel_version = wheel.read("netccl/version.py").decode()
    metadata = wheel.read(record.replace("RECORD", "METADATA")).decode()
    for line in ("Name: netccl\n", "Version: %s\n" % sys.argv[2], "Requires-Python: >=3.8\n"):
        assert line in metadata, metadata


def version_of(source, path):
    names = {"__file__": path}
    exec(source, names)
    return names["VERSION"]


# In the wheel with git's commit, in the checkout without, and unknown in a copy of the folder alone, as pip made before 21.3.
shown = version_of(wheel_version, "/nowhere/netccl/version.py")
assert re.fullmatch(re.escape(sys.argv[2]) + r"( \(g[0-9a-f]+\+?\))?", shown), shown
own = os.path.join(sys.argv[1], "netccl", "version.py")
with open(own, encoding="utf-8") as f:
    source = f.read()
assert version_of(source, own) == sys.argv[2]
assert version_of(source, "/nowhere/netccl/version.py") == "0"
print("%d files" % len(names))
