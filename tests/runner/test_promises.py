"""What each native kernel promises of its instructions, whatever compiler makes it and whatever processor it is for."""

import re
import shutil

import pytest

from castmates.workloads.native import build as native
from tests.runner import promises
from tests.runner.assembly import functions
from tests.runner.compilers import CROSS, Target, assembler_text, text_of

# Of instructions: what these are about is written at run time, done by the system, or by their parts.
WITHOUT_PROMISE = {"icache", "pagefault", "fileio", "mix", "loop", "lines"}
PARTS = [kernel for kernel in promises.PROMISES if kernel not in native.TRIALS]
GCC = Target("gcc", "sapphirerapids")  # has all that x86 has


def test_every_kernel_has_its_promises_checked():
    assert promises.PROMISES.keys() | WITHOUT_PROMISE == {*native.KERNELS, *native.TRIALS}


@pytest.mark.parametrize("kernel", promises.PROMISES)
def test_here_each_kernel_keeps_what_it_promises(compiler, tmp_path, kernel):
    """As it is built on this machine, by this machine's compiler, for its processor."""
    flags = native.compile_flags(compiler)
    here = Target(compiler[0], "native")
    made = functions(text_of([*compiler, *flags], native.SOURCES / f"{kernel}.c", tmp_path), here.arm)
    assert promises.broken(kernel, made, here) == []


@pytest.mark.landing
@pytest.mark.parametrize("target", CROSS, ids=str)
def test_elsewhere_all_kernels_keep_what_they_promise(tmp_path, target):
    """All in one program, as `mix` has them; that each must be compiled by itself costs thrice the time."""
    used = ", ".join(f"&{kernel}_kernel" for kernel in PARTS)
    lines = ["#define CM_PART", *(f'#include "{kernel}.c"' for kernel in PARTS)]
    (tmp_path / "all.c").write_text("\n".join([*lines, f"const cm_kernel *const all[] = {{{used}}};\n"]))
    made = functions(assembler_text(target, tmp_path / "all.c", tmp_path), target.arm)
    trials = functions(assembler_text(target, native.SOURCES / "known.c", tmp_path), target.arm)
    broken = {
        kernel: promises.broken(kernel, made if kernel in PARTS else trials, target) for kernel in promises.PROMISES
    }
    assert {kernel: wrong for kernel, wrong in broken.items() if wrong} == {}


ANY_REGISTER = ('#define CM_SCALAR __attribute__((target("general-regs-only")))', "#define CM_SCALAR")
NO_WAY = ('#define CM_WAY(name) __asm__ volatile("/* way: " name " */")', "#define CM_WAY(name) ((void)0)")
NO_PIN = ('#define CM_PIN(value) __asm__ volatile("" : "+r"(value))', "#define CM_PIN(value) ((void)0)")
HALF = "        uint64_t half = count / 2;\n"
BY_A_MASK = "        low += half & -(uint64_t)(keys[low + half] < key);\n"
BRANCH = 'uint64_t child = 0; if (node->key < key) { CM_WAY("larger"); child = 1; }'
OF_COPY = "    CM_OVER_VECTORS (i, elements)\n        cm_store(&a[i], b[i]);"
THROUGH = ("    _mm512_stream_pd((double *)to, (__m512d)value);", "    *to = value;")
ATOMIC = "__atomic_fetch_add(&sharing_all.common, 1, __ATOMIC_RELAXED)"

# What a compiler makes where a protection is missing, and plain mistakes: kernel, file, what is found, changes.
DAMAGES: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    ("integer", "pins.h", "no instruction of general registers", [ANY_REGISTER, NO_PIN]),
    ("integer", "integer.c", "multiplications and not 4", [("CM_STEP(d, d * INTEGER_FACTOR + 7);", "")]),
    ("spin", "spin.c", "access to memory", [("CM_STEP(a, a", "CM_STEP(a, *(volatile uint64_t *)state")]),
    ("compute", "compute.c", "reads", [("y ^= table[", "y ^= table[y >> 58] ^ table[")]),
    (
        "avx",
        "avx.c",
        "packed mul",
        [("(avx_vector)_mm512_fmadd_pd((__m512d)x, (__m512d)factor, (__m512d)added)", "x * factor + added")],
    ),
    ("search", "pins.h", "is not behind a jump", [NO_WAY]),
    ("search", "search.c", "chooses without a jump", [(HALF, HALF + BY_A_MASK)]),
    ("hashjoin", "pins.h", "not read behind a jump", [NO_WAY]),
    ("tree", "tree.c", "no loop computes|jumps depend", [("uint64_t child = node->key < key;", BRANCH)]),
    ("chase", "chase.c", "chains", [("    CM_PIN(next);", "    (void)*(const volatile uint64_t *)&line->written;")]),
    (
        "capacity",
        "capacity.c",
        "no loop reads and writes",
        [
            ("        line->written++;", "        ;"),
            ("    cycles->here[cycle] = next;", ""),
            ("    cycles->loads[cycle]++;", ""),
        ],
    ),
    ("tlb", "tlb.c", "chains", [("    CM_PIN(next);", "    (void)*(void *volatile *)(at + 1);")]),
    (
        "gather",
        "gather.c",
        "no instruction of general registers",
        [("sum += *gather_at(s, i);", "sum += s->table[i];")],
    ),
    ("spmv", "spmv.c", "several entries|reads", [("*spmv_at(s, entry)", "s->x[entry]")]),
    (
        "stencil",
        "stencil.c",
        "no loop|writes",
        [("        stencil_points(into + c, above + c, row + c, below + c);", "        into[c] = row[c] + 1;")],
    ),
    ("stream", "stream.c", "it calls memcpy", [(OF_COPY, "    memcpy(a, b, elements * sizeof *s->a);")]),
    ("stream", "vectors.h", "its loops are", [THROUGH]),
    ("bandwidth", "vectors.h", "writes to the caches", [THROUGH]),
    ("sharing", "sharing.c", "atomic additions", [(ATOMIC, "sharing_all.common++")]),
    ("known", "known_core.h", "accesses", [("        EIGHT((void)word[4];)\n", "")]),
]


@pytest.mark.parametrize(("kernel", "file", "found", "changes"), DAMAGES, ids=[f"{one[0]}-{one[2]}" for one in DAMAGES])
def test_what_is_not_as_promised_is_found(tmp_path, kernel, file, found, changes):
    sources = shutil.copytree(native.SOURCES, tmp_path / "sources")
    text = (sources / file).read_text(encoding="utf-8")
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (sources / file).write_text(text, encoding="utf-8")
    made = functions(assembler_text(GCC, sources / f"{kernel}.c", tmp_path, sources=sources), GCC.arm)
    broken = promises.broken(kernel, made, GCC)
    assert any(re.search(found, wrong) for wrong in broken), broken


def test_vectors_that_are_not_the_widest_are_found(tmp_path):
    narrow = Target("gcc", "x86-64-v3")
    made = functions(assembler_text(narrow, native.SOURCES / "avx.c", tmp_path), narrow.arm)
    assert promises.broken("avx", made, GCC) == ["avx_block: its vectors have {256} bits and not 512"]
