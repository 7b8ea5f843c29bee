# SPDX-License-Identifier: BSD-3-Clause
"""Makes the wheel of netccl (PEP 517): files of Python and four of description in a zip; no tool that would have to be fetched."""

import base64
import glob
import hashlib
import os
import re
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
WHEEL = "Wheel-Version: 1.0\nGenerator: hawser\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _project():
    """The simple values of pyproject.toml: Python before 3.11 has no reader for it."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        return dict(re.findall(r'^([\w-]+) = "(.*)"$', f.read(), flags=re.M))


def _metadata(project):
    return ("Metadata-Version: 2.1\nName: %(name)s\nVersion: %(version)s\nSummary: %(description)s\nLicense: BSD-3-Clause\n"
            "Requires-Python: %(requires-python)s\n" % project)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    stem = "%s-%s" % (project["name"], project["version"])
    info = stem + ".dist-info/"
    files = {}
    for path in sorted(glob.glob(os.path.join(HERE, "netccl", "*.py")) + glob.glob(os.path.join(HERE, "netccl", "*.so"))):
        with open(path, "rb") as f:
            files["netccl/" + os.path.basename(path)] = f.read()
    files[info + "METADATA"] = _metadata(project).encode()
    files[info + "WHEEL"] = WHEEL.encode()
    files[info + "top_level.txt"] = b"netccl\n"
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    files[info + "RECORD"] = (record + info + "RECORD,,\n").encode()
    name = stem + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0)), data)
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []
