#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""capi.py against include/hawser/ina.h: structures and numbers (what ina-layouts prints), prototypes (from the header's text).

test_layouts.py PATH-OF-INA-LAYOUTS HEADER. Needs no torch.
"""

import ctypes
import importlib.util
import os
import re
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
spec = importlib.util.spec_from_file_location("capi", os.path.join(here, "..", "..", "..", "ina", "python", "netccl", "capi.py"))
capi = importlib.util.module_from_spec(spec)
spec.loader.exec_module(capi)

STRUCTURES = {"ha_ina_options": capi.Options, "ha_ina_request": capi.Request}


def structures(printed):
    fields = {name: [] for name in STRUCTURES}
    for what, *rest in (line.split() for line in printed.splitlines()):
        if what == "field":
            mine = getattr(STRUCTURES[rest[0]], rest[1])
            wanted = [int(rest[2]), int(rest[3])]
            assert [mine.offset, mine.size] == wanted, "%s.%s: %r, the header has %s" % (rest[0], rest[1], mine, wanted)
            fields[rest[0]].append(rest[1])
        elif what == "size":
            assert ctypes.sizeof(STRUCTURES[rest[0]]) == int(rest[1]), rest
        else:
            mine = getattr(capi, rest[0][len("HA_INA_") :])
            assert mine == int(rest[1]), "%s is %s in the header, %s here" % (rest[0], rest[1], mine)
    for name, structure in STRUCTURES.items():
        assert fields[name] == [f[0] for f in structure._fields_], name


def _kind(text):
    """A C parameter's or result's type as ctypes has it."""
    text = text.strip()
    if text == "void":
        return None
    if "TICKET]" in text:
        return capi.Ticket
    if "(*" in text:
        return capi.NOTIFY
    if text.count("*") == 2:
        return capi._pointer
    for c, mine in (("struct ha_ina_options *", ctypes.POINTER(capi.Options)), ("struct ha_ina_request *", ctypes.POINTER(capi.Request)),
                    ("uint32_t *", ctypes.POINTER(ctypes.c_uint32)), ("int *", ctypes.POINTER(ctypes.c_int)), ("char *", ctypes.c_char_p)):
        if c in text:
            return mine
    if "*" in text:
        return ctypes.c_void_p
    word = re.sub(r"\s*\w+$", "", text) if " " in text else text
    return {"size_t": ctypes.c_size_t, "uint64_t": ctypes.c_uint64, "uint32_t": ctypes.c_uint32, "unsigned": ctypes.c_uint,
            "int": ctypes.c_int, "bool": ctypes.c_bool}[word]


def _split(parameters):
    depth, parts = 0, [""]
    for c in parameters:
        depth += (c == "(") - (c == ")")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return parts


def prototypes(header):
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    found = {}
    for result, name, parameters in re.findall(r"^([a-z][\w ]*?[ *]+)(ha_ina_\w+)\((.*?)\);", text, flags=re.M | re.S):
        found[name] = (_kind(result), [_kind(p) for p in _split(parameters)])
    assert set(found) == set(capi.PROTOTYPES), set(found) ^ set(capi.PROTOTYPES)
    for name, wanted in found.items():
        mine = capi.PROTOTYPES[name]
        assert mine[0] == wanted[0] and list(mine[1]) == wanted[1], "%s: %r, the header has %r" % (name, mine, wanted)


structures(subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout)
with open(sys.argv[2]) as f:
    prototypes(f.read())
print("%d structures, %d functions" % (len(STRUCTURES), len(capi.PROTOTYPES)))
