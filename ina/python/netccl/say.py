# SPDX-License-Identifier: BSD-3-Clause
"""What users are told, on the logger `netccl`; Python prints warnings to stderr unless told otherwise."""

import logging

log = logging.getLogger("netccl")
_said = set()


def once(key, message):
    """A warning that is given once in a process for each key."""
    if key not in _said:
        _said.add(key)
        log.warning("netccl: %s", message)


def warn(message):
    log.warning("netccl: %s", message)


def warn_if(here, message):
    if here:
        warn(message)
