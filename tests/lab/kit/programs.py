"""Debian's pqos and PAPI, unpacked, for guests to install: this machine needs neither, and keeps its own."""

import shutil
from pathlib import Path

from tests.lab.kit.common import Say, whole
from tests.lab.kit.debian import Debian, unpack

# intel-cmt-cat brings pqos and its library; PAPI's releases differ in the processors that they know.
PACKAGES = ("intel-cmt-cat", "libpapi7.0", "libpfm4")
KEPT = ("usr/sbin", "usr/lib")


def build(debian: Debian, product: Path, say: Say) -> None:
    """Leave what guests install in `product`, as it would lie below /."""
    say("pqos and PAPI")
    work = product.with_name(f"{product.name}.work")
    shutil.rmtree(work, ignore_errors=True)
    unpack(debian.fetch(*PACKAGES), work)
    with whole(product) as folder:
        for part in KEPT:
            shutil.copytree(work / part, folder / part, symlinks=True)
    shutil.rmtree(work)
