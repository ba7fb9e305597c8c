"""What each native kernel promises of its instructions, whatever compiler makes it and whatever processor it is for."""

import re
import shutil

import pytest

from castmates.workloads.native import build as native
from tests.runner.assembly import functions
from tests.runner.compilers import CROSS, Target, assembler_text, text_of
from tests.runner.kernel_cases import PROMISES, UNPROTECTED, WITHOUT_PROMISE
from tests.runner.promises import broken

pytestmark = pytest.mark.compilers
PARTS = [kernel for kernel in PROMISES if kernel not in native.TRIALS]
GCC = Target("gcc", "sapphirerapids")  # has all that x86 has


def test_every_kernel_has_its_promises_checked():
    assert PROMISES.keys() | WITHOUT_PROMISE == {*native.KERNELS, *native.TRIALS}


@pytest.mark.parametrize("kernel", PROMISES)
def test_here_each_kernel_keeps_what_it_promises(compiler, tmp_path, kernel):
    """As it is built on this machine, by this machine's compiler, for its processor."""
    flags = native.compile_flags(compiler)
    here = Target(compiler[0], "native")
    made = functions(text_of([*compiler, *flags], native.SOURCES / f"{kernel}.c", tmp_path), here.arm)
    assert broken(PROMISES[kernel], made, here) == []


@pytest.mark.landing
@pytest.mark.parametrize("target", CROSS, ids=str)
def test_elsewhere_all_kernels_keep_what_they_promise(tmp_path, target):
    """All in one program, as `mix` has them; that each must be compiled by itself costs thrice the time."""
    used = ", ".join(f"&{kernel}_kernel" for kernel in PARTS)
    lines = ["#define CM_PART", *(f'#include "{kernel}.c"' for kernel in PARTS)]
    (tmp_path / "all.c").write_text("\n".join([*lines, f"const cm_kernel *const all[] = {{{used}}};\n"]))
    made = functions(assembler_text(target, tmp_path / "all.c", tmp_path), target.arm)
    trials = functions(assembler_text(target, native.SOURCES / "known.c", tmp_path), target.arm)
    found = {kernel: broken(PROMISES[kernel], made if kernel in PARTS else trials, target) for kernel in PROMISES}
    assert {kernel: wrong for kernel, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("kernel", "file", "found", "changes"), UNPROTECTED, ids=[f"{one[0]}-{one[2]}" for one in UNPROTECTED]
)
def test_what_is_not_as_promised_is_found(tmp_path, kernel, file, found, changes):
    sources = shutil.copytree(native.SOURCES, tmp_path / "sources")
    text = (sources / file).read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (sources / file).write_text(text, encoding="utf-8")
    made = functions(assembler_text(GCC, sources / f"{kernel}.c", tmp_path, sources=sources), GCC.arm)
    all_wrong = broken(PROMISES[kernel], made, GCC)
    assert any(re.search(found, wrong) for wrong in all_wrong), all_wrong


def test_vectors_that_are_not_the_widest_are_found(tmp_path):
    narrow = Target("gcc", "x86-64-v3")
    made = functions(assembler_text(narrow, native.SOURCES / "avx.c", tmp_path), narrow.arm)
    assert broken(PROMISES["avx"], made, GCC) == ["avx_block: its vectors have {256} bits and not 512"]
