# SPDX-License-Identifier: BSD-3-Clause
"""The version of hawser that this package is a part of, as `ha --version` has it; whoever installs the package fills it in.

In a checkout, where nobody has, it is what the checkout's CMakeLists.txt says, and "0" in a copy of the folder alone.
"""

import os
import re

VERSION = "@HAWSER_VERSION@"


def read_version(folder):
    try:
        with open(os.path.join(folder, "CMakeLists.txt"), encoding="utf-8") as f:
            found = re.search(r"^project\(hawser VERSION ([\d.]+)", f.read(), flags=re.M)
    except OSError:
        return "0"
    return found.group(1) if found else "0"


if VERSION.startswith("@"):
    VERSION = read_version(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
