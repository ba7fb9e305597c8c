"""Boots one of the lab's kernels on an emulated machine of a given shape, and runs a command in it as root."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.lab.kit.build import PROJECT, Lab
from tests.lab.kit.common import WITH_US

# An Ice Lake unless a shape has another model: of a Skylake-SP the kernel switches RDT off. Without AVX, which this
# QEMU emulates so that numpy and pandas crash now and then.
CPU = "max,family=6,level=22,vendor=GenuineIntel,model-id=RDT-lab,-la57,-avx,-avx2,-f16c,-fma"
# no_timer_check: where the host is busy, the kernel would find its timer dead at boot, and panic.
KERNEL_OPTIONS = (
    "console=ttyS0 rdinit=/init quiet loglevel=4 panic=-1 mitigations=off nokaslr nmi_watchdog=0 tsc=reliable"
    " random.trust_cpu=on audit=0 no_timer_check"
)
LOOK_S = 1.0  # between two looks at a guest


@dataclass(frozen=True)
class Shape:
    """A machine: a kernel, and what its processor has."""

    name: str
    kernel: str  # series
    rdt: str | None = ""  # QEMU_RDT, see processor/rdt.c; "" is all of it, None is nothing
    sockets: int = 1
    cpus: int = 4
    memory: int = 1024  # MiB
    model: str = "model=106,stepping=6"  # of the processor; the kernel and PAPI go by it
    words: str = ""  # more for the kernel's command line

    @property
    def obeys(self) -> bool:
        """Whether its caches take time by the model of processor/cache.c, and each CPU has a time of its own."""
        return "obey=1" in (self.rdt or "")


@dataclass(frozen=True)
class Boot:
    """What became of a command in a guest."""

    code: int | None  # None: the guest did not come to an end
    stdout: str
    stderr: str
    console: str
    seconds: float

    @property
    def told(self) -> str:
        """All output, to find out what went wrong."""
        end = f"exit {self.code}" if self.code is not None else "the guest did not come to an end"
        console = f"\n--- console\n{self.console[-4000:]}" if self.code is None else ""
        return f"{end} after {self.seconds:.0f} s\n{self.stdout[-8000:]}\n{self.stderr[-8000:]}{console}"


def boot(lab: Lab, shape: Shape, command: str, share: Path, timeout: float, sign: str = "", silence: float = 0) -> Boot:
    """Run a command of bash in the folder `share`, which the guest sees as /share and may write to.

    Where the file `sign` of that folder does not grow for `silence` seconds, the guest hangs and is ended.
    """
    share.mkdir(parents=True, exist_ok=True)
    share.joinpath("command").write_text(f"{command}\n")
    share.joinpath("visible").write_text("".join(f"{path}\n" for path in (*_visible(), lab.programs)))
    console = share / "console"
    began = time.monotonic()
    guest = subprocess.Popen(
        [*WITH_US, *_words(lab, shape, share, console)],
        env=_environment(shape, share / "truth.csv"),
        stdin=subprocess.DEVNULL,
        stdout=(share / "qemu.log").open("w"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _await(guest, began + timeout, share / sign, silence or timeout)
    finally:
        if guest.poll() is None:
            os.killpg(guest.pid, signal.SIGKILL)
            guest.wait()
    code = _text(share / "code").strip()
    return Boot(
        int(code) if code else None,
        _text(share / "stdout"),
        _text(share / "stderr"),
        _text(share / "qemu.log") + _text(console),
        time.monotonic() - began,
    )


def _await(guest: "subprocess.Popen[bytes]", deadline: float, sign: Path, silence: float) -> None:
    """Wait until it ends, or for as long as there is hope."""
    seen, since = 0, time.monotonic()
    while guest.poll() is None and time.monotonic() < min(deadline, since + silence):
        try:
            guest.wait(LOOK_S)
        except subprocess.TimeoutExpired:
            size = sign.stat().st_size if sign.exists() else 0
            seen, since = (size, time.monotonic()) if size != seen else (seen, since)


def _words(lab: Lab, shape: Shape, share: Path, console: Path) -> list[str]:
    kernel = lab.kernels[shape.kernel]
    p9 = "local,security_model=none"
    clock = ("-icount", "shift=0") if shape.obeys else ()
    topology = f"{shape.cpus},sockets={shape.sockets},cores={shape.cpus // shape.sockets},threads=1"
    return [
        *(str(lab.qemu), "-L", str(lab.firmware)),
        *("-nodefaults", "-no-user-config", "-nographic", "-no-reboot", "-machine", "pc"),
        *("-accel", "tcg,thread=single", *clock, "-cpu", f"{CPU},{shape.model}"),
        *("-smp", topology, "-m", str(shape.memory)),
        *("-kernel", str(kernel.image), "-initrd", str(kernel.initrd), "-append", f"{KERNEL_OPTIONS} {shape.words}"),
        *("-chardev", f"file,id=console,path={_escaped(console)}", "-serial", "chardev:console"),
        *("-fsdev", f"{p9},id=host,path=/,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=host,mount_tag=host"),
        *("-fsdev", f"{p9},id=share,path={_escaped(share.absolute())}"),
        *("-device", "virtio-9p-pci,fsdev=share,mount_tag=share"),
        *("-object", "rng-builtin,id=random", "-device", "virtio-rng-pci,rng=random"),
    ]


def _environment(shape: Shape, truth: Path) -> dict[str, str]:
    usual = {name: value for name, value in os.environ.items() if name != "QEMU_RDT"}
    return usual if shape.rdt is None else usual | {"QEMU_RDT": shape.rdt, "QEMU_RDT_TRUTH": str(truth)}


def _visible() -> Sequence[Path]:
    """Name what the guest must see of this machine, even if it lies in /tmp."""
    return PROJECT, Path(sys.prefix), Path(sys.base_prefix)


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""
