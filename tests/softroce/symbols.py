#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The versioned symbols of both shapes against the system's libibverbs: no public one may be missing, none may be
invented. Usage: symbols.py OUR_LIBRARY..."""
import glob, subprocess, sys

# Private to rdma-core although they carry public versions: they convert structs of the kernel's connection manager for
# librdmacm, which has no business with a device the kernel does not know.
KERNEL_ONLY = {"ibv_copy_path_rec_from_kern", "ibv_copy_path_rec_to_kern", "ibv_copy_qp_attr_from_kern",
               "ibv_copy_ah_attr_from_kern"}


def symbols(path):
    out = subprocess.run(["objdump", "-T", path], check=True, capture_output=True, text=True).stdout
    found = set()
    for line in out.splitlines():
        words = line.split()
        if len(words) >= 6 and "*UND*" not in line and "IBVERBS_" in words[-2] and not words[-1].startswith("IBVERBS_"):
            found.add((words[-1], words[-2].strip("()")))
    return found


system = glob.glob("/usr/lib/*/libibverbs.so.1") + glob.glob("/usr/lib64/libibverbs.so.1")
if not system:
    print("skipped: no libibverbs.so.1 of the system to compare with")
    sys.exit(77)
public = {s for s in symbols(system[0]) if "PRIVATE" not in s[1] and s[0] not in KERNEL_ONLY
          and tuple(map(int, s[1].split("_")[1].split("."))) <= (1, 14)}
status = 0
for path in sys.argv[1:]:
    ours = symbols(path)
    missing = sorted(public - ours)
    extra = sorted(s for s in ours - symbols(system[0]))
    print(f"{path}: {len(public & ours)} of {len(public)} public symbols")
    for name, version in missing:
        print(f"  missing: {name}@{version}")
    for name, version in extra:
        print(f"  not in libibverbs: {name}@{version}")
    status |= bool(missing or extra)
    if len(public) < 80:
        print("too few symbols found to compare with")
        status = 1
sys.exit(status)
