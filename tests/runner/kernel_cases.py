"""What the tests of kernels know of each kernel: a new one has a row in every list of this module."""

import platform

import pytest

from tests.runner.promises import (
    Check,
    branches,
    branches_to_a_match,
    computes_scalars,
    counts_together,
    depends_by_arithmetic,
    has_loops,
    in_general_registers,
    in_registers,
    multiplies,
    only_reads,
    reads_and_writes,
    reads_one_by_one,
    sixteen,
    streams_past_caches,
    streams_rows,
    walks,
    whole_vectors,
    without_vectors,
)

# Of instructions: what these are about is written at run time, done by the system, or by their parts.
WITHOUT_PROMISE = {"icache", "pagefault", "fileio", "mix", "loop", "lines", "count"}
PROMISES: dict[str, dict[str, tuple[Check, ...]]] = {  # of the functions of each kernel
    "integer": {"integer_work": (without_vectors, in_registers, multiplies(4))},
    "spin": {"spin_work": (without_vectors, in_registers, multiplies(4))},
    "compute": {"compute_chains": (computes_scalars,)},
    "avx": {"avx_block": (whole_vectors, in_registers)},
    "search": {"search_many": (in_general_registers, only_reads, branches)},
    "hashjoin": {"hashjoin_join": (in_general_registers, branches_to_a_match)},
    "tree": {"tree_walk": (in_general_registers, only_reads, depends_by_arithmetic)},
    "chase": {"chase_walk": (walks(8),)},
    "capacity": {"capacity_work": (in_general_registers, reads_and_writes)},
    "tlb": {"tlb_walk": (in_general_registers, walks(1))},
    "gather": {
        "gather_read": (in_general_registers, only_reads),
        "gather_update": (in_general_registers, reads_and_writes),
    },
    "spmv": {"spmv_rows": (reads_one_by_one,)},
    "stencil": {"stencil_row": (streams_rows,)},
    "stream": {"stream_work": (has_loops("triad", "copy", "read", "write", "past triad"),)},
    "bandwidth": {"bandwidth_work": (streams_past_caches,)},
    "sharing": {"sharing_work": (counts_together,)},
    "known": {
        "count_loads": (sixteen(lambda one: one.reads),),
        "count_stores": (sixteen(lambda one: one.writes),),
    },
}

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
UNPROTECTED: list[tuple[str, str, str, list[tuple[str, str]]]] = [
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

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86 locks words that lie in two lines")

# Each with a small working set, and units that are no multiple of a usual chunk but one of the kernel's step.
RUNS = [
    ("stream --bytes 96K", 3000),
    ("chase --bytes 64K", 1_000_003),
    ("capacity --bytes 64K", 10_000_003),
    ("bandwidth --bytes 64K", 4_000_004),
    ("compute", 10_000_019),
    ("spin", 10_000_019),
    ("gather --bytes 64K", 1_000_003),
    ("gather --bytes 64K --mode update", 1_000_003),
    ("stencil --bytes 64K", 512 * 1999),
    ("spmv --bytes 64K", 100_003),
    ("hashjoin --bytes 64K", 100_003),
    ("tree --bytes 64K", 100_003),
    ("search", 100_003),
    ("integer", 1_000_003),
    ("avx", 1024 * 1999),
    ("icache --bytes 64K", 64 * 9973),
    ("tlb --bytes 1M --parallel 3", 1_000_003),
    ("sharing --mode lock", 100_003),
    ("sharing --mode false", 1_000_003),
    ("sharing --mode true", 1_000_003),
    pytest.param("sharing --mode split", 10_003, marks=on_x86),
    ("pagefault --bytes 1M", 10_003),
    ("fileio --bytes 1M", 203),
    ("mix tree:20:64K icache:64:16K integer:100", 1003),
]

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
SPOILT = [  # the kernel, an option, what is spoilt, and the verdict
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
