"""A copy of perf that has capabilities, and that root and one group alone may run.

As text it is "none", or the group, the capabilities and the bytes of the copy: "1000 cap_ipc_lock,cap_perfmon 9059728".
"""

import os
import shutil
import struct
from pathlib import Path

from castmates.files import replace

NONE, PROGRAM = "none", "perf"
PERF_PACKAGES = "linux-perf (Debian), linux-tools-$(uname -r) (Ubuntu), perf (Fedora, SUSE)"
CAPABILITIES = {"cap_ipc_lock": 14, "cap_perfmon": 38}
_ATTRIBUTE, _MODE = "security.capability", 0o750
_VERSION = 0x02000000 | 1  # of the attribute, and that the capabilities hold from the start
_LAYOUT = struct.Struct("<IIIII")  # version, then permitted and inheritable: the lower halves, the upper halves


def wanted(gid: int) -> str:
    """Return what a copy for a group is to be; an upgraded perf is another one. OSError where there is no perf."""
    return f"{gid} {','.join(CAPABILITIES)} {_program().stat().st_size}"


def read(path: Path) -> str:
    """Return what is there."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return NONE
    if path.is_symlink() or status.st_uid != 0:
        return f"somebody else's file (uid {status.st_uid})"
    try:
        _, low, _, high, _ = _LAYOUT.unpack(os.getxattr(path, _ATTRIBUTE))
    except (OSError, struct.error):
        low = high = 0
    names = [name for name, bit in CAPABILITIES.items() if (low | high << 32) >> bit & 1]
    return f"{status.st_gid} {','.join(names)} {status.st_size}"


def write(path: Path, text: str) -> None:
    """Make the copy, or remove it."""
    if text == NONE:
        path.unlink(missing_ok=True)
        return
    gid, names, _ = text.split(" ")
    bits = sum(1 << CAPABILITIES[name] for name in names.split(","))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o755)

    def fill(temporary: Path) -> None:
        shutil.copyfile(_program(), temporary)
        os.chown(temporary, 0, int(gid))
        temporary.chmod(_MODE)  # before it can do more than the original
        os.setxattr(temporary, _ATTRIBUTE, _LAYOUT.pack(_VERSION, bits & 0xFFFFFFFF, 0, bits >> 32, 0))

    replace(path, fill)


def _program() -> Path:
    """The installed perf; of a wrapper that chooses by the kernel's version, only the wrapper would be copied."""
    found = shutil.which(PROGRAM)
    if found is None:
        raise FileNotFoundError(2, "there is no perf to copy: install it and grant again")
    with Path(found).open("rb") as stream:
        if stream.read(4) != b"\x7fELF":
            raise FileNotFoundError(2, f"{found} is a script that starts another perf: put that one first on the PATH")
    return Path(found)
