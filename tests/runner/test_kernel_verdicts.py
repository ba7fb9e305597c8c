"""What the kernels find wrong with their own results: one program around the real sources, which spoils one value."""

import platform
import re
from pathlib import Path

import pytest

from castmates.workloads.native import build as native
from tests.runner.programs import run

LAST_PASS = "what its last pass"
TRIAD, COPY, READ = 'mode = "triad"', 'mode = "copy"', 'mode = "read"'
CHAINS = ("parallel = 1", "parallel = 3")
CYCLES = {
    "": "right",
    "s->loads[0] += 1": "does not stand where",
    "s->lines[9].next = s->lines": "closed before|does not stand",
    "s->lines[9].next = (struct line *)s": "leads out",
    "s->lines[s->count - 1].next = &s->lines[s->count - 1]": "does not stand|does not lead back|closed before",
}
VISITS = {
    "": "right",
    "s->cycles.loads[0] += 1": "does not stand where",
    "s->cycles.lines[9].written++": "not written as often",
}
DAMAGES = [  # the kernel, an option, what is spoilt, and the verdict
    *(("stream", f'mode = "{mode}"', "", "right") for mode in ("triad", "copy", "read", "write", "nontemporal")),
    ("stream", TRIAD, "s->a[5] += 1", LAST_PASS),
    ("stream", TRIAD, "s->a[s->at] = s->b[s->at] + stream_scale(s->pass) * s->c[s->at]", LAST_PASS),
    ("stream", TRIAD, "s->at += 1", LAST_PASS),
    ("stream", COPY, "s->a[5] += 1", LAST_PASS),
    ("stream", COPY, "s->at += 8", LAST_PASS),
    ("stream", COPY, "s->pass += 1", LAST_PASS),
    ("stream", READ, "s->sum += 1", "not that of the array"),
    ("stream", READ, "s->at += 8", "not that of the array"),
    ("stream", 'mode = "write"', "s->a[s->elements - 1] += 1", LAST_PASS),
    ("stream", 'mode = "write"', "s->at += 1", LAST_PASS),
    ("stream", 'mode = "nontemporal"', "s->a[5] += 1", LAST_PASS),
    *(("chase", chains, damage, verdict) for chains in CHAINS for damage, verdict in CYCLES.items()),
    *(("capacity", chains, damage, verdict) for chains in CHAINS for damage, verdict in VISITS.items()),
    ("bandwidth", "", "", "right"),
    ("bandwidth", "", "s->sum -= 1", "not that of the blocks"),
    ("bandwidth", "", "s->memory[3 * BANDWIDTH_PER_BLOCK] += 1", LAST_PASS),
    ("compute", "", "", "right"),
    ("compute", "", "s->checksum ^= 1", "checksum differs"),
    ("compute", "", "s->table[3] ^= 4", "checksum differs"),
    ("gather", 'mode = "random"', "", "right"),
    ("gather", 'mode = "random"', "s->pass.sum += 1", "not that of its passes"),
    ("gather", 'mode = "random"', "s->pass.at -= 1", "not that of its passes"),
    ("gather", 'mode = "random"', "s->table[5] ^= 1", "has changed"),
    ("gather", 'mode = "update"', "", "right"),
    ("gather", 'mode = "update"', "s->table[5] ^= 1", "missing, was made twice"),
    ("gather", 'mode = "update"', "s->pass.at += 1", "missing, was made twice"),
    ("gather", 'mode = "update"', "s->pass.passes += 1", "missing, was made twice"),
    ("stencil", "", "", "right"),
    ("stencil", "", "s->into[700] += 1", "grid that is written"),
    ("stencil", "", "s->from[700] += 1", "grid that is read"),
    ("stencil", "", "s->at += 1", "grid that is written"),
    ("spmv", "", "", "right"),
    ("spmv", "", "s->y[3] += 1", "not that of its last pass"),
    ("spmv", "", "s->value[8] += 1; spmv_work(s, s->rows)", "not that of its last pass"),
    ("spmv", "", "s->column[9] ^= 1; spmv_work(s, s->rows)", "not that of its last pass"),
    ("spmv", "", "s->at += 1", "not that of its last pass"),
    ("hashjoin", "", "", "right"),
    ("hashjoin", "", "s->pass.sum ^= 1", "sum of the matches"),
    ("hashjoin", "", "s->slots[hashjoin_slot(s, hashjoin_key(7))].load += 1", "has changed"),
    ("hashjoin", "", "s->slots[hashjoin_slot(s, hashjoin_key(7))].key = 0", "has not the rows"),
    ("tree", "", "", "right"),
    ("tree", "", "s->pass.sum ^= 1", "what the lookups found"),
    ("tree", "", "s->root->load ^= 1", "not the one that was planted"),
    ("tree", "", "s->root->child[0] = NULL", "not the one that was planted"),
    ("tree", "", "s->root->child[1] = (struct node *)s", "not the one that was planted"),
    ("tree", "", "s->root->child[1] = s->root", "not the one that was planted"),
    ("search", "", "", "right"),
    ("search", "", "s->pass.at += 1", "places found"),
    ("search", "", "s->keys[9] += 1", "has changed"),
    ("integer", "", "", "right"),
    ("integer", "", "s->linear[2] ^= 1", "chain of multiplications"),
    ("integer", "", "s->shifted[3] ^= 1", "chain of shifts"),
    ("integer", "", "s->done += 1", "does not stand"),
    ("avx", "", "", "right"),
    ("avx", "", "s->sum ^= 1", "plain numbers"),
    ("avx", "", "s->blocks += 1", "plain numbers"),
    ("icache", "", "", "right"),
    ("icache", "", "s->pass.sum ^= 1", "another sum"),
    (
        "icache",
        "",
        "mprotect(s->code, s->lines * 64, PROT_READ | PROT_WRITE);"
        "unsigned char *at = s->code + 64 * (uint64_t)s->order[70] + (sizeof(long) == 8 && s->code[0] == 0x48 ? 3 : 1);"
        "*at ^= 4; mprotect(s->code, s->lines * 64, PROT_READ | PROT_EXEC);"
        "__builtin___clear_cache((char *)s->code, (char *)s->code + s->lines * 64); icache_work(s, s->lines)",
        "another sum",
    ),
    ("tlb", "", "", "right"),
    ("tlb", "", "s->loads[0] += 1", "does not stand"),
    ("tlb", "", "*tlb_line(s, 9) = tlb_line(s, 0)", "closed before|does not stand"),
    ("tlb", "", "*tlb_line(s, 9) = s->memory + 8", "leads out"),
    ("sharing", 'mode = "lock"', "", "right"),
    ("sharing", 'mode = "lock"', "sharing_all.locked -= 1", "sum of what they counted"),
    ("sharing", 'mode = "true"', "sharing_all.common -= 1", "sum of what they counted"),
    ("sharing", 'mode = "split"', "sharing_all.split[60] -= 1", "sum of what they counted"),
    ("sharing", 'mode = "false"', "*s->own -= 1", "not what it counted"),
    ("pagefault", "", "", "right"),
    ("pagefault", "", "*(uint64_t *)s->memory += 1", "lost what was written"),
    ("pagefault", "", "s->faults = s->touched - 1", "fewer page faults"),
    ("fileio", 'mode = "write"', "", "right"),
    ("fileio", 'mode = "write"', "s->wrong += pwrite(s->file, s, 8, 700) != 8", "not what had been written"),
    ("fileio", 'mode = "write"', "close(s->file); fileio_work(s, 1)", "Bad file descriptor"),
]
STATES = {"chase": "cycles"}  # whose kernel has another name

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
    assert {kernel for kernel, _, damage, _ in DAMAGES if damage} == {*native.KERNELS} - without


@pytest.fixture(scope="module")
def spoiler(compiler: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One program for all damages: compiled once."""
    folder = tmp_path_factory.mktemp("spoiler")
    sources = "\n".join(f'#include "{kernel}.c"' for kernel in dict.fromkeys(kernel for kernel, *_ in DAMAGES))
    cases = [
        f"CASE({number}, {kernel}, {STATES.get(kernel, kernel)}, {f'options.{option}' if option else ''}, {damage})"
        for number, (kernel, option, damage, _) in enumerate(DAMAGES)
    ]
    (folder / "spoiler.c").write_text(SPOILER % {"sources": sources, "cases": "\n".join(cases)})
    native.compile_program(folder / "spoiler.c", folder / "spoiler", compiler, ("-std=gnu11", "-O1", "-pthread"))
    return folder / "spoiler"


@pytest.mark.parametrize("number", range(len(DAMAGES)), ids=[f"{one[0]}, {one[1]}: {one[2]}" for one in DAMAGES])
def test_verification_notices_damage(spoiler, number):
    if "split" in DAMAGES[number][1] and platform.machine() != "x86_64":
        pytest.skip("only x86 locks words that lie in two lines")
    status, out, _ = run([spoiler, str(number)])
    assert status == 0
    assert re.search(DAMAGES[number][3], out), out


def test_chunks_smaller_than_parallel_visit_all_chains_alike(compiler, tmp_path):
    source, program = tmp_path / "few.c", tmp_path / "few"
    source.write_text(FEW_AT_A_TIME)
    native.compile_program(source, program, compiler, ("-std=gnu11", "-O1", "-pthread"))
    assert run([program]) == (0, "375 375 375 375 375 375 375 375 right\n" * 3, "")
