"""What a native kernel's name and documentation promise of its instructions, as checks of assembler text.

Each check goes over the functions of a program and names what breaks a promise. docs/kernels.md has the same in words.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from tests.runner.assembly import Function, Instruction
from tests.runner.compilers import Target

Check = Callable[[Function, Target], Iterator[str]]
MOVE = {"memcpy", "memset", "memmove"}
AVX_CHAINS = 12
LOADS_OF_KNOWN = 16


def without_vectors(function: Function, _: Target) -> Iterator[str]:
    """No vector register anywhere, not even to fetch its values before the loop: some processors slow down for one."""
    yield from (f"'{one}' is no instruction of general registers" for one in function.instructions if is_vector(one))


def in_general_registers(function: Function, _: Target) -> Iterator[str]:
    """Plain instructions, one value each: no vector registers in any of its loops."""
    for loop in function.loops:
        yield from (f"'{one}' is no instruction of general registers" for one in loop if is_vector(one))


def is_vector(one: Instruction) -> bool:
    return one.has_vector_register or one.gathers


def in_registers(function: Function, _: Target) -> Iterator[str]:
    """Its loop has no operand in memory."""
    for loop in function.inner_loops:
        yield from (f"'{one}' is an access to memory" for one in loop if one.reads or one.writes)


def multiplies(times: int) -> Check:
    """So many multiplications in each round of its only loop."""

    def check(function: Function, _: Target) -> Iterator[str]:
        counts = [sum(one.multiplies_integers for one in loop) for loop in function.inner_loops]
        if not counts or any(count == 0 or count % times for count in counts):
            yield f"its loops have {counts} multiplications and not {times}"

    return check


def computes_scalars(function: Function, _: Target) -> Iterator[str]:
    """`compute`: multiplications of both kinds, one read from its table, no write, nothing packed."""
    for loop in function.inner_loops:
        if any(one.vector_bits > 128 or "packed" in one.arithmetic or one.writes for one in loop):
            yield "it has packed arithmetic, wide vectors or writes"
        rounds = sum(one.multiplies_integers for one in loop)
        real = sum("mul" in one.arithmetic for one in loop)
        table = sum(one.reads and "rip" not in one.operands for one in loop)
        if not rounds == real == table > 0:
            yield f"a loop has {rounds} whole and {real} real multiplications and {table} reads"
    if not function.inner_loops:
        yield "there is no loop"


def width(target: Target) -> int:
    """The widest vectors of a processor, in bits."""
    return 512 if "avx512f" in target.features else 256 if "avx" in target.features else 128


def whole_vectors(function: Function, target: Target) -> Iterator[str]:
    """`avx`: a multiply-add of each chain, as wide as the processor has them, and of nothing else."""
    fused = target.arm or bool({"fma", "avx512f"} & target.features)
    wanted = {"packed fused"} if fused else {"packed mul", "packed add"}
    for loop in function.inner_loops:
        found = Counter(one.arithmetic for one in loop if one.arithmetic)
        if found.keys() != wanted or any(count % AVX_CHAINS for count in found.values()):
            yield f"a loop has {dict(found)} and not {AVX_CHAINS} of {wanted}"
        widths = {one.vector_bits for one in loop if one.arithmetic}
        if widths != {width(target)}:
            yield f"its vectors have {widths} bits and not {width(target)}"
    if len(function.inner_loops) != 1:
        yield f"there are {len(function.inner_loops)} loops and not one"


def branches(function: Function, _: Target) -> Iterator[str]:
    """`search`: both ways of each step are jumped to, and nothing is chosen without a jump."""
    for way in ("way: upper half", "way: lower half"):
        if not function.ways(way):
            yield f"'{way}' is not behind a jump"
        for loop in function.loops_with(way):
            yield from (f"'{one}' chooses without a jump" for one in loop if one.chooses)


def branches_to_a_match(function: Function, _: Target) -> Iterator[str]:
    """`hashjoin`: what a row holds is read behind a jump, and only there."""
    blocks = function.ways("way: a match")
    if not blocks or not all(any(one.reads for one in block) for block in blocks):
        yield "a match is not read behind a jump"


def depends_by_arithmetic(function: Function, _: Target) -> Iterator[str]:
    """`tree`: the way down is computed, so that each load waits for the one before: two jumps, both to the end."""
    walks = [loop for loop in function.inner_loops if any(one.chooses for one in loop)]
    if not walks:
        yield "no loop computes which child comes next"
    for loop in walks:
        if (jumps := sum(one.is_conditional_jump for one in loop)) > 2:
            yield f"{jumps} jumps depend on what is found"


def chains(loop: list[Instruction]) -> list[str]:
    """The registers that a loop loads from where they themselves point to: one for each load."""
    found = []
    for one in loop:
        target, _, place = one.operands.partition(", ") if one.arm else one.operands.rpartition(", ")[::-1]
        if one.reads and place.removeprefix("0").strip("()[]") == target:
            found.append(target)
    return found


def walks(most: int) -> Check:
    """As many chains of dependent loads at a time as wanted, up to so many in registers: one load each, and no more."""

    def check(function: Function, target: Target) -> Iterator[str]:
        kept = {len(set(chains(loop))): loop for loop in function.inner_loops if not any(one.writes for one in loop)}
        if lacking := set(range(1, most + 1)) - kept.keys():
            yield f"no loop walks {sorted(lacking)} chains in registers"
        for count, loop in kept.items():
            others = len(chains(loop)) != sum(one.reads for one in loop) or any(one.has_vector_register for one in loop)
            if count > 0 and (others or len(chains(loop)) % count):
                yield f"a loop has other loads than those of its {count} chains, or vectors"
        if any(one.gathers for one in function.instructions):
            yield "loads of several chains are gathered"

    return check


def reads_and_writes(function: Function, _: Target) -> Iterator[str]:
    """Some loop of it reads and writes memory."""
    if not any(any(one.reads for one in loop) and any(one.writes for one in loop) for loop in function.inner_loops):
        yield "no loop reads and writes"


def only_reads(function: Function, _: Target) -> Iterator[str]:
    """Its inner loops read and do not write."""
    for loop in function.inner_loops:
        if any(one.writes for one in loop) or not any(one.reads for one in loop):
            yield "a loop does not read, or writes"


def reads_one_by_one(function: Function, _: Target) -> Iterator[str]:
    """`spmv`: each entry's element is a separate read."""
    for loop in function.inner_loops:
        if sum(one.reads for one in loop) < 3:
            yield f"a loop has {sum(one.reads for one in loop)} reads and not one of each kind"
        for one in loop:
            if one.gathers or "packed" in one.arithmetic or one.vector_bits > 128:
                yield f"'{one}' takes several entries at a time"


def streams_rows(function: Function, _: Target) -> Iterator[str]:
    """`stencil`: for each vector that is written one of each row is read, and two more unless they are still there."""
    for loop in function.inner_loops:
        writes = sum(one.writes for one in loop)
        reads = sum(one.reads and "rip" not in one.operands for one in loop)
        packed = sum("packed" in one.arithmetic for one in loop)
        if not 0 < 3 * writes <= reads <= 5 * writes or packed < 6 * writes:
            yield f"a loop has {reads} reads, {packed} calculations and {writes} writes"


def _kind(loop: list[Instruction]) -> str:
    """What a loop over arrays does, in a word."""
    stores = [one for one in loop if one.writes]
    reads, computes = any(one.reads for one in loop), any("packed mul" in one.arithmetic for one in loop)
    if not stores:
        return "read" if reads and any("packed add" in one.arithmetic for one in loop) else "other"
    if any(one.vector_bits == 0 for one in stores):
        return "other"
    if all(one.past_caches for one in stores):
        return "past" if not computes else "past triad"
    if any(one.past_caches for one in stores):
        return "mixed"
    return "triad" if computes else "copy" if reads else "write"


def has_loops(*wanted: str) -> Check:
    """There is a loop of each of these kinds, none that mixes them, and nobody is called who moves memory."""

    def check(function: Function, target: Target) -> Iterator[str]:
        kinds = {_kind(loop) for loop in function.inner_loops}
        here = {one.removeprefix("past").strip() or "write" if target.arm else one for one in wanted}
        if not here <= kinds or "mixed" in kinds:
            yield f"its loops are {sorted(kinds)}; there must be {sorted(here)}"
        yield from (f"it calls {one.calls}" for one in function.instructions if one.calls in MOVE)

    return check


def streams_past_caches(function: Function, target: Target) -> Iterator[str]:
    """`bandwidth`: whole vectors are read, and written past the caches where the processor can (x86)."""
    vectors = [one for loop in function.loops for one in loop if one.vector_bits]
    if not any(one.reads for one in vectors):
        yield "it reads no vectors"
    if not any(one.writes for one in vectors):
        yield "it writes no vectors"
    if not target.arm:
        yield from (f"'{one}' writes to the caches" for one in vectors if one.writes and not one.past_caches)
    yield from (f"it calls {one.calls}" for one in function.instructions if one.calls in MOVE)


def counts_together(function: Function, target: Target) -> Iterator[str]:
    """`sharing`: a lock, a counter that is added to atomically (two on x86), and one that is not."""
    calls = {one.calls for one in function.instructions if one.calls}
    locked = sum(one.locked for one in function.instructions) + any("ldadd" in call for call in calls)
    if "pthread_mutex_lock" not in calls:
        yield "it takes no lock"
    if locked < (1 if target.arm else 2):
        yield f"it has {locked} atomic additions"
    if not any(one.writes and not one.locked for one in function.instructions):
        yield "it counts only atomically"


def sixteen(of: Callable[[Instruction], bool]) -> Check:
    """`known`: as many accesses in a round as its portion should have."""

    def check(function: Function, _: Target) -> Iterator[str]:
        counts = [sum(map(of, loop)) for loop in function.inner_loops]
        if not counts or any(count == 0 or count % LOADS_OF_KNOWN for count in counts):
            yield f"its loops have {counts} accesses"

    return check


def broken(promised: dict[str, tuple[Check, ...]], functions: dict[str, Function], target: Target) -> list[str]:
    """What a kernel's functions do not keep of what is promised of them."""
    found = []
    for name, checks in promised.items():
        if name not in functions:
            found.append(f"{name}: there is no function of this name")
        elif not functions[name].loops:
            found.append(f"{name}: there is no loop")
        else:
            found += [f"{name}: {wrong}" for check in checks for wrong in check(functions[name], target)]
    return found
