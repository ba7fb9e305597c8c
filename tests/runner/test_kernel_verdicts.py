"""What the kernels find wrong with their own results: one program around the real sources, which spoils one value."""

import platform
import re
from pathlib import Path

import pytest

from castmates.workloads.native import build as native
from tests.runner.kernel_cases import SPOILT, STATES
from tests.runner.programs import run

SPOILER = """
#define CM_PART
%(sources)s
#define CASE(NUMBER, KERNEL, STATE, OPTION, DAMAGE)                         \\
    case NUMBER: {                                                          \\
        cm_options options = cm_default_options(&KERNEL##_kernel);          \\
        options.bytes = 1 << 18;                                            \\
        options.writes = 30;                                                \\
        OPTION;                                                             \\
        struct STATE *s = KERNEL##_prepare(&options, 0);                    \\
        KERNEL##_work(s, 3 * KERNEL##_kernel.step);                         \\
        KERNEL##_restart(s);                                                \\
        for (unsigned i = 0; i < 3; i++)                                    \\
            KERNEL##_work(s, 333 * KERNEL##_kernel.step);                   \\
        DAMAGE;                                                             \\
        wrong = KERNEL##_verify(s);                                         \\
        break;                                                              \\
    }
int main(int argc, char **argv)
{
    const char *wrong = NULL;
    switch (atoi(argv[argc - 1])) {
%(cases)s
    }
    puts(wrong == NULL ? "right" : wrong);
    return 0;
}
"""

FEW_AT_A_TIME = """
#define CM_PART
#include "chase.c"
#include "capacity.c"
#include "tlb.c"
#define CHUNKS(KERNEL, LOADS)                                          \\
    {                                                                  \\
        cm_options options = cm_default_options(&KERNEL##_kernel);     \\
        options.bytes = 1 << 20;                                       \\
        options.parallel = 8;                                          \\
        void *state = KERNEL##_prepare(&options, 0);                   \\
        for (unsigned i = 0; i < 1000; i++)                            \\
            KERNEL##_work(state, 3);                                   \\
        for (unsigned i = 0; i < 8; i++)                               \\
            printf("%llu ", (unsigned long long)(LOADS)[i]);           \\
        puts(KERNEL##_verify(state) == NULL ? "right" : "wrong");      \\
    }
int main(void)
{
    CHUNKS(chase, ((struct cycles *)state)->loads)
    CHUNKS(capacity, ((struct capacity *)state)->cycles.loads)
    CHUNKS(tlb, ((struct tlb *)state)->loads)
    return 0;
}
"""


def test_every_kernel_that_has_a_result_notices_damage():
    without = {*native.KEEPERS, "spin", "mix"}  # no result; those of its parts
    assert {kernel for kernel, _, damage, _ in SPOILT if damage} == {*native.KERNELS} - without


@pytest.fixture(scope="module")
def spoiler(compiler: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One program for all damages: compiled once."""
    folder = tmp_path_factory.mktemp("spoiler")
    sources = "\n".join(f'#include "{kernel}.c"' for kernel in dict.fromkeys(kernel for kernel, *_ in SPOILT))
    cases = [
        f"CASE({number}, {kernel}, {STATES.get(kernel, kernel)}, {f'options.{option}' if option else ''}, {damage})"
        for number, (kernel, option, damage, _) in enumerate(SPOILT)
    ]
    (folder / "spoiler.c").write_text(SPOILER % {"sources": sources, "cases": "\n".join(cases)})
    native.compile_program(folder / "spoiler.c", folder / "spoiler", compiler, ("-std=gnu11", "-O1", "-pthread"))
    return folder / "spoiler"


@pytest.mark.parametrize("number", range(len(SPOILT)), ids=[f"{one[0]}, {one[1]}: {one[2]}" for one in SPOILT])
def test_verification_notices_damage(spoiler, number):
    if "split" in SPOILT[number][1] and platform.machine() != "x86_64":
        pytest.skip("only x86 locks words that lie in two lines")
    status, out, _ = run([spoiler, str(number)])
    assert status == 0
    assert re.search(SPOILT[number][3], out), out


def test_chunks_smaller_than_parallel_visit_all_chains_alike(compiler, tmp_path):
    source, program = tmp_path / "few.c", tmp_path / "few"
    source.write_text(FEW_AT_A_TIME)
    native.compile_program(source, program, compiler, ("-std=gnu11", "-O1", "-pthread"))
    assert run([program]) == (0, "375 375 375 375 375 375 375 375 right\n" * 3, "")
