#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""test_build_depends.py ROOT: `scripts/install-deps deb` installs what dpkg-buildpackage wants: build-essential, and each package of
Build-Depends in debian/control, or something of the same name that brings it."""
import os
import re
import subprocess
import sys

ROOT = sys.argv[1]


def wanted():
    with open(os.path.join(ROOT, "debian/control"), encoding="utf-8") as file:
        field = re.search(r"^Build-Depends:(.*(?:\n[ \t].*)*)", file.read(), re.M).group(1)
    return {re.match(r"[a-z0-9.+-]+", part.strip()).group() for part in field.split(",") if part.strip()} | {"build-essential"}


def installed():
    """The words of the lists that the part `deb` takes."""
    with open(os.path.join(ROOT, "scripts/install-deps"), encoding="utf-8") as file:
        script = file.read()
    taken = re.search(r'^\tdeb\) want\+=\((.*)\) ;;', script, re.M).group(1)
    names = re.findall(r"\$\{(\w+)\[@\]\}", taken)
    lists = "".join(re.search(r"^%s=\([^)]*\)\n" % name, script, re.M).group() for name in names)
    words = subprocess.run(["bash", "-c", lists + "echo " + taken], capture_output=True, text=True, check=True).stdout.split()
    assert words, taken
    return set(words)


def main():
    brought = {"debhelper-compat": "debhelper", "dh-sequence-python3": "dh-python", "python3:any": "python3"}
    missing = {name for name in wanted() if brought.get(name, name) not in installed()}
    assert not missing, "scripts/install-deps deb does not install " + ", ".join(sorted(missing))
    print("%d packages are wanted, and all are installed" % len(wanted()))


if __name__ == "__main__":
    main()
