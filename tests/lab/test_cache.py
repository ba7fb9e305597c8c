"""The cache of the machine that obeys, by itself: what any cache of its kind must do, and known answers."""

import ctypes
import random
import subprocess
from ctypes import c_bool, c_int, c_int64, c_uint32, c_uint64, c_void_p

import pytest

from tests.lab.kit.qemu import PATCH

SETS, WAYS = 64, 12
LINES = SETS * WAYS
FULL = (1 << WAYS) - 1
OWN, HIT, MISS = range(3)


class Shape(ctypes.Structure):
    _fields_ = [(name, c_uint32) for name in ("sets", "ways", "own_sets", "policy")] + [
        ("victim", c_bool),
        ("leak", c_uint32),
        ("ahead", c_uint32),
    ]


class Access(ctypes.Structure):
    _fields_ = [("where", c_int), ("read", c_uint32), ("written", c_uint32)]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    file = tmp_path_factory.mktemp("cache") / "cache.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", file, PATCH.with_name("cache.c")], check=True)
    library = ctypes.CDLL(str(file))
    library.cache_new.restype, library.cache_lines.restype = c_void_p, c_int64
    library.cache_access.argtypes = [c_void_p, c_uint32, c_uint64, c_bool, c_uint64, c_uint32]
    library.cache_access.restype = Access
    library.cache_device.argtypes = [c_void_p, c_uint64, c_uint64]
    library.cache_lines.argtypes = [c_void_p, c_uint32]
    return library


class Cache:
    def __init__(self, library, **shape):
        self.library = library
        self.itself = library.cache_new(ctypes.byref(Shape(sets=SETS, ways=WAYS, own_sets=1, **shape)))

    def access(self, line, owner=1, mask=FULL, write=False, cpu=None):
        return self.library.cache_access(self.itself, owner if cpu is None else cpu, line, write, mask, owner)

    def held(self, owner=1):
        return self.library.cache_lines(self.itself, owner)

    def misses(self, lines, **how):
        """Of one pass; no line is met in the core's own four, which are of its end."""
        return sum(self.access(line, **how).where == MISS for line in lines)


@pytest.mark.parametrize("ways", [1, 5, 12])
def test_a_loop_that_fits_the_ways_of_its_mask_hits_and_one_more_line_a_set_misses(library, ways):
    cache, mask = Cache(library), FULL >> (WAYS - ways)
    fits, too_large = range(SETS * ways), range(SETS * (ways + 1))
    cache.misses(fits, mask=mask)
    assert cache.misses(fits, mask=mask) == 0
    assert cache.held() == SETS * ways
    cache.misses(too_large, mask=mask)
    assert cache.misses(too_large, mask=mask) >= len(too_large) - 4, "LRU, and a loop"
    assert cache.held() == SETS * ways


def test_what_streams_in_other_ways_takes_nothing_and_hits_are_found_in_any_way(library):
    cache, loop = Cache(library), range(SETS * 8)
    cache.misses(loop, mask=0xFF)
    cache.misses(range(10**6, 10**6 + 9 * LINES), owner=2, mask=0xF00)
    assert (cache.held(1), cache.held(2)) == (SETS * 8, SETS * 4)
    assert cache.misses(loop, mask=0x800) == 0, "a mask says where lines are put"
    cache.misses(range(10**6, 10**6 + 9 * LINES), owner=2)
    assert cache.held(1) == 0


def test_a_leak_is_seen_in_the_ways_of_others(library):
    cache, loop = Cache(library, leak=4), range(SETS * 8)
    cache.misses(loop, mask=0xFF)
    cache.misses(range(10**6, 10**6 + 20 * LINES), owner=2, mask=0xF00)
    assert cache.held(2) > SETS * 6


def test_one_that_protects_used_lines_keeps_some_of_a_loop_that_is_too_large(library):
    loop = range(2 * LINES)
    hits = {}
    for policy in (0, 1):
        cache = Cache(library, policy=policy)
        for _ in range(20):
            missed = cache.misses(loop)
        hits[policy] = 1 - missed / len(loop)
    assert hits[0] < 0.01
    assert hits[1] > 0.25, "the best that can be kept is half"


def test_a_victim_cache_adds_to_the_cores_own_and_holds_no_line_twice(library):
    cache = Cache(library, victim=True)
    cache.misses(range(LINES))
    assert cache.misses(range(LINES)) == 0
    assert cache.held() == LINES - 4


def test_an_inclusive_one_recalls_what_it_loses(library):
    cache = Cache(library)
    cache.access(0, write=True)
    assert cache.access(0).where == OWN
    written = sum(cache.access(SETS * k, owner=2).written for k in range(1, WAYS + 1))
    assert written == 1, "it was changed in the core's own cache alone"
    assert cache.access(0).where == MISS


def test_devices_fill_their_ways_for_nobody(library):
    cache = Cache(library)
    cache.misses(range(LINES))
    for line in range(10**6, 10**6 + 5 * LINES):
        library.cache_device(cache.itself, line, 0xC00)
    assert cache.held(1) == SETS * 10


@pytest.mark.parametrize("shape", [{}, {"victim": True}, {"policy": 1}, {"leak": 3, "ahead": 2}])
def test_lines_are_conserved(library, shape):
    """What was read in less what is held was pushed out; random users under random masks."""
    rng = random.Random(7)
    cache = Cache(library, **shape)
    for _ in range(20000):
        owner = rng.randrange(1, 4)
        line = rng.randrange(owner * 10**4, owner * 10**4 + LINES)
        cache.access(line, owner=owner, mask=(0xF, 0xF0, 0xFFF)[owner - 1], write=rng.random() < 0.3)
        assert 0 <= sum(cache.held(one) for one in range(4)) <= LINES
    if not shape:
        assert cache.held(1) <= 4 * SETS
        assert cache.held(2) <= 4 * SETS
