"""The driver of resctrl as a state machine: any shares after any others, and somebody who looks at every write."""

from itertools import combinations, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from castmates.rdt.fake import LAB, LAB_TWO_SOCKETS
from castmates.rdt.resctrl.wanted_schemata import parse
from castmates.study.spec import REST, Share
from tests.unit.rdt.fakes import Bench

NAMES = ["lead@0", "other@1", "third@2", REST]
WAYS = 12
EDGES = st.lists(st.integers(1, WAYS - 1), min_size=3, max_size=3, unique=True).map(sorted)


def parts(edges, names):
    """Everybody has ways of its own, side by side."""
    bounds = [0, *edges[: len(names) - 1], WAYS]
    masks = [(1 << end) - (1 << begin) for begin, end in pairwise(bounds)]
    return tuple(Share(member=name, ways=mask) for name, mask in zip(names, masks, strict=True))


class Watched:
    """A tree that shows the masks after every write to them."""

    def __init__(self, fake):
        self.fake, self.allocator, self.seen = fake, None, []

    def __getattr__(self, name):
        return getattr(self.fake, name)

    def write(self, path, text):
        self.fake.write(path, text)
        if path.endswith("schemata") and self.allocator:
            self.seen.append(self.masks())

    def masks(self):
        paths = {REST: ""} | self.allocator.groups
        return {name: parse(self.fake.read(f"{path}/schemata".lstrip("/")))["L3"] for name, path in paths.items()}


def overlap(masks):
    """Who has ways of whom on the first cache."""
    return [(one, other) for one, other in combinations(sorted(masks), 2) if masks[one][0] & masks[other][0]]


class Shares(RuleBasedStateMachine):
    """One launch's driver on a machine, with three members on one cache."""

    @initialize(shape=st.sampled_from([LAB, LAB_TWO_SOCKETS]), found=st.sampled_from([0xFFF, 0xFFF, 0x3FF]))
    def begun(self, shape, found):
        self.bench = Bench(shape, cpus=((0,), (1,), (0,)))
        self.bench.fake.write("schemata", f"L3:0={found:x}\n")
        self.found = self.bench.fake.read("schemata")
        self.tree = Watched(self.bench.fake)
        self.allocator = self.bench.prepared(self.tree)
        self.tree.allocator, self.base, self.apart = self.allocator, found, False

    @precondition(lambda self: self.base == 0xFFF)
    @rule(edges=EDGES, order=st.permutations(NAMES))
    def parted(self, edges, order):
        """Everybody has its own ways; between parts that keep their order none overlap."""
        before, self.tree.seen = self.tree.masks(), []
        self.allocator.apply(parts(edges, order))
        after = self.tree.masks()
        assert {share.member: share.ways for share in parts(edges, order)} == {
            name: own[0] for name, own in after.items()
        }
        if self.apart and list(order) == self.order:
            assert [overlap(seen) for seen in self.tree.seen] == [[]] * len(self.tree.seen), (before, after)
        self.apart, self.order = True, list(order)

    @rule()
    def opened(self):
        """Everybody has what was found."""
        self.allocator.apply(())
        assert {own[0] for own in self.tree.masks().values()} == {self.base}
        self.apart = False

    @rule(ways=st.integers(1, 10))
    def lead_alone(self, ways):
        """The lead has a share, and others have what was found."""
        self.allocator.apply((Share(member="lead@0", ways=(1 << ways) - 1),))
        assert self.tree.masks()["lead@0"][0] == (1 << ways) - 1
        self.apart = False

    @invariant()
    def everybody_is_in_its_group(self):
        assert self.allocator.misplaced() == []

    def teardown(self):
        self.allocator.restore()
        assert self.bench.groups() == [], "a group is left"
        assert self.bench.fake.read("schemata") == self.found, "a mask is left"


TestShares = Shares.TestCase
TestShares.settings = settings(stateful_step_count=8)


@given(EDGES, EDGES)
def test_shares_never_overlap_while_they_are_written(first, then):
    """What lies side by side before and after does so in between: nobody gets ways before their owner has lost them."""
    bench = Bench(cpus=((0,), (1,), (0,)))
    tree = Watched(bench.fake)
    tree.allocator = bench.prepared(tree)
    tree.allocator.apply(parts(first, NAMES))
    tree.seen = []
    tree.allocator.apply(parts(then, NAMES))
    assert len(tree.seen) == 4
    assert [overlap(seen) for seen in tree.seen] == [[]] * 4
