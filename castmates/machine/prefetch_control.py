"""The register in which a processor's hardware prefetchers are switched off, where its maker documents it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from castmates.errors import CastmatesError
from castmates.linux import host, msr
from castmates.machine.journal import KINDS, Change
from castmates.study.cpus import format_cpu_list

NAME = "prefetchers"
TAKE_OUT = "or take 'off' out of 'cache.prefetchers'"  # of a study that switches them by scene
# Intel's register and its four bits: L2 stream and adjacent line, L1 stream and by instruction. Of server processors
# alone: on others the same bits mean something else (Intel, Disclosure of Hardware Prefetcher Control, 2014).
PREFETCH_CONTROL, PREFETCH_BITS = 0x1A4, 0xF
XEONS = frozenset(
    {0x1A, 0x1E, 0x2E, 0x2C, 0x2F, 0x2D, 0x3E, 0x3F, 0x4F, 0x56, 0x55, 0x6A, 0x6C, 0x8F, 0xCF, 0xAD, 0xAE}
)
# AMD's and its five: L1 stream, stride and region, L2 stream and up/down (AMD64 manual, volume 2, Prefetch Control).
# Families of Zen 3 and later; a model that lacks the register refuses to read it.
AMD_CONTROL, AMD_BITS = 0xC0000108, 0x2F
AMD_FAMILIES = frozenset({25, 26})


@dataclass(frozen=True, slots=True)
class Control:
    """A register, of each core, and its bits that are set where a prefetcher is off."""

    register: int
    bits: int

    def changes(self, root: Path, word: str, cpus: Collection[int], leave_out: str) -> list[Change]:
        """List what has to be written so that these CPUs' prefetchers are `on` or `off`; all other bits stay."""
        changes = []
        for cpu in sorted(cpus):
            target = msr.path_of(cpu, self.register, root)
            try:
                was = KINDS[msr.KIND].read(target)
            except OSError as error:
                raise CastmatesError(
                    f"{NAME} cannot be read: {target}: {error.strerror}; load the kernel module msr (sudo modprobe "
                    f"msr) and run the study as root, {leave_out}."
                ) from None
            now = int(was, 16)
            new = now | self.bits if word == "off" else now & ~self.bits
            if new != now:
                changes.append(Change(NAME, msr.KIND, str(target), was, f"{new:#x}"))
        return changes


def control_of(root: Path, leave_out: str) -> Control:
    """Return the register of this processor; an error is a sentence."""
    shown = host.cpuinfo(root)
    family, model = (int(text) if (text := shown.get(key, "")).isdecimal() else -1 for key in ("cpu family", "model"))
    if shown.get("vendor_id") == "GenuineIntel" and family == 6 and model in XEONS:
        return Control(PREFETCH_CONTROL, PREFETCH_BITS)
    if shown.get("vendor_id") == "AuthenticAMD" and family in AMD_FAMILIES:
        return Control(AMD_CONTROL, AMD_BITS)
    raise CastmatesError(
        f"{NAME} cannot be set here: castmates knows the registers of Intel's Xeon processors and of AMD's since Zen 3 "
        f"alone, so set them in the firmware; {leave_out}."
    )


def switches_off(root: Path, cpus: Iterable[int]) -> list[Change]:
    """List what switches the prefetchers of these CPUs off for a scene; an error is a sentence."""
    cpus = sorted(cpus)
    changes = control_of(root, TAKE_OUT).changes(root, "off", cpus, TAKE_OUT)
    already = [cpu for cpu in cpus if not any(f"/cpu/{cpu}/" in change.target for change in changes)]
    if already:
        raise CastmatesError(
            f"{NAME} of CPUs {format_cpu_list(already)} are off already, so there is nothing to switch: set them on in "
            f"the firmware, {TAKE_OUT}."
        )
    return changes


def refusal(root: Path, cpus: Iterable[int]) -> str:
    """Why they cannot be switched off for a scene; "" where nothing speaks against it."""
    try:
        switches_off(root, cpus)
    except CastmatesError as error:
        return str(error)
    return ""
