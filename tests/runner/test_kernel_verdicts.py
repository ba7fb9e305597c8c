"""What the kernels find wrong with their own results: programs around the real sources, which spoil one value."""

import re

import pytest

from castmates.workloads.native import build as native
from tests.runner.programs import run

SPOILER = """
#define CM_PART
#include "%(kernel)s.c"
int main(int argc, char **argv)
{
    const cm_options options = {
        .bytes = 1 << 16, .threads = 1, .parallel = %(parallel)d, .writes = 30, .mode = "%(mode)s"};
    struct %(state)s *s = %(kernel)s_prepare(&options, 0);
    %(kernel)s_work(s, 3000);
    %(kernel)s_work(s, 300);
    if (argc != 2 || %(kernel)s_verify(s) != NULL)
        return 1;
    switch (atoi(argv[1])) {
%(damages)s
    }
    const char *wrong = %(kernel)s_verify(s);
    puts(wrong == NULL ? "unnoticed" : wrong);
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

LAST_PASS = "what its last pass"
CYCLES = {
    "s->loads[0] += 1": "does not stand where",
    "s->lines[9].next = s->lines": "closed before|does not stand",
    "s->lines[9].next = (struct line *)s": "leads out",
    "s->lines[s->count - 1].next = &s->lines[s->count - 1]": "does not stand|does not lead back|closed before",
}
VISITS = {
    "s->cycles.loads[0] += 1": "does not stand where",
    "s->cycles.lines[9].written++": "not written as often",
}


@pytest.mark.parametrize(
    ("kernel", "mode", "parallel", "damages"),
    [
        (
            "stream",
            "triad",
            1,
            {
                "s->a[5] += 1": LAST_PASS,
                "s->a[s->at] = s->b[s->at] + stream_scale(s->pass) * s->c[s->at]": LAST_PASS,
                "s->at += 1": LAST_PASS,
            },
        ),
        ("stream", "copy", 1, {"s->a[5] += 1": LAST_PASS, "s->at += 8": LAST_PASS, "s->pass += 1": LAST_PASS}),
        ("stream", "read", 1, {"s->sum += 1": "not that of the array", "s->at += 8": "not that of the array"}),
        ("stream", "write", 1, {"s->a[s->elements - 1] += 1": LAST_PASS, "s->at += 1": LAST_PASS}),
        ("stream", "nontemporal", 1, {"s->a[5] += 1": LAST_PASS}),
        ("chase", "", 1, CYCLES),
        ("chase", "", 3, CYCLES),
        ("capacity", "", 1, VISITS),
        ("capacity", "", 3, VISITS),
        (
            "bandwidth",
            "",
            1,
            {"s->sum -= 1": "not that of the blocks", "s->memory[3 * BANDWIDTH_PER_BLOCK] += 1": LAST_PASS},
        ),
        ("compute", "", 1, {"s->checksum ^= 1": "checksum differs", "s->table[3] ^= 4": "checksum differs"}),
    ],
)
def test_verification_notices_damage(compiler, tmp_path, kernel, mode, parallel, damages):
    source, program = tmp_path / "spoiler.c", tmp_path / "spoiler"
    state = "cycles" if kernel == "chase" else kernel
    cases = "\n".join(f"    case {number}: {damage}; break;" for number, damage in enumerate(damages))
    words = {"kernel": kernel, "mode": mode, "parallel": parallel, "state": state, "damages": cases}
    source.write_text(SPOILER % words)
    native.compile_program(source, program, compiler, (*native.FLAGS, "-O1"))
    for number, (damage, verdict) in enumerate(damages.items()):
        status, out, _ = run([program, str(number)])
        assert status == 0, damage
        assert re.search(verdict, out), (damage, out)


def test_chunks_smaller_than_parallel_visit_all_chains_alike(compiler, tmp_path):
    source, program = tmp_path / "few.c", tmp_path / "few"
    source.write_text(FEW_AT_A_TIME)
    native.compile_program(source, program, compiler, ("-std=gnu11", "-O1", "-pthread"))
    assert run([program]) == (0, "375 375 375 375 375 375 375 375 right\n" * 3, "")
