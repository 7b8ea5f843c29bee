# SPDX-License-Identifier: BSD-3-Clause
"""include/hawser/ina.h for ctypes: numbers, structures, prototypes, and nothing else.

tests/ina/python/layouts.c holds the structures and numbers against the header.
"""

import ctypes as c

SEGMENT = 2 << 20
RANKS = 32
TICKET = 192

ALL_REDUCE, REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER, BARRIER = range(1, 7)
BYTES, INT32, FLOAT32 = range(3)
HOST, CUDA = range(2)
SATURATED, NONFINITE = 1, 2


class Options(c.Structure):
    _fields_ = [("backend", c.c_char_p), ("buffer", c.c_size_t), ("loopback", c.c_bool), ("give_up", c.POINTER(c.c_int))]


class Request(c.Structure):
    _fields_ = [
        ("coll", c.c_int),
        ("type", c.c_int),
        ("root", c.c_uint),
        ("bytes", c.c_size_t),
        ("in", c.c_void_p),
        ("out", c.c_void_p),
        ("memory", c.c_int),
        ("stream", c.c_void_p),
    ]


NOTIFY = c.CFUNCTYPE(None, c.c_void_p, c.c_int)
Ticket = c.c_uint8 * TICKET

_handle, _pointer = c.c_void_p, c.POINTER(c.c_void_p)
PROTOTYPES = {
    "ha_ina_open": (c.c_int, [_pointer, c.POINTER(Options), c.c_char_p, c.c_size_t]),
    "ha_ina_close": (None, [_handle]),
    "ha_ina_error": (c.c_char_p, [_handle]),
    "ha_ina_address": (c.c_uint32, [_handle]),
    "ha_ina_group_create": (c.c_int, [_handle, c.POINTER(c.c_uint32), c.c_uint, c.c_char_p, Ticket]),
    "ha_ina_group_join": (c.c_int, [_handle, Ticket, c.c_uint, _pointer]),
    "ha_ina_group_leave": (None, [_handle]),
    "ha_ina_group_rank": (c.c_uint, [_handle]),
    "ha_ina_group_ranks": (c.c_uint, [_handle]),
    "ha_ina_group_state": (c.c_int, [_handle]),
    "ha_ina_post": (c.c_int, [_handle, c.POINTER(Request), _pointer]),
    "ha_ina_test": (c.c_bool, [_handle, c.POINTER(c.c_int)]),
    "ha_ina_wait": (c.c_int, [_handle, c.c_uint64]),
    "ha_ina_notify": (c.c_int, [_handle, NOTIFY, c.c_void_p]),
    "ha_ina_op_segments": (c.c_size_t, [_handle]),
    "ha_ina_op_done": (c.c_bool, [_handle, c.c_size_t]),
    "ha_ina_op_met": (c.c_uint, [_handle]),
    "ha_ina_op_free": (None, [_handle]),
}


def load(path):
    """The library at `path` with its prototypes. OSError, AttributeError: it is none."""
    library = c.CDLL(path)
    for name, (result, arguments) in PROTOTYPES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
