"""What antagonists are named for, and whether they can do it: the rules, with the facts of a machine of 504 MB."""

from pathlib import Path

from castmates.study.catalogue import gather_catalogue
from castmates.study.last_level import CachePlace, LastLevel, sized_workload
from castmates.study.mixes import member_of
from castmates.study.model import Catalogue, Study, Workload
from castmates.study.placement.search import Seat
from castmates.study.reading import read_keys
from castmates.study.sizes import RULES, cautions
from castmates.study.spec import Member, Prepared
from tests.unit.snapshots import assert_as_before
from tests.unit.test_memory_peak import SERVER, SMALL

MIB = 1 << 20
GRANITE = LastLevel(504 * MIB, 16)
CATALOGUE = Path(__file__).parents[2] / "config/workloads"


def member(words: str, cores: int = 1, name: str = "one") -> Member:
    workload = Workload(command=words, environment="native", progress="heartbeat")
    seat = Seat(tuple(range(cores)), ())
    return member_of(name, "antagonist", seat, workload, Prepared(environment_key="k", content="c"))


def said(words: str, cores: int = 1, peak=SERVER, cache: LastLevel | None = GRANITE) -> str:
    return " ".join(cautions([member(words, cores)], lambda _: cache, peak))


# Broken on 504 MiB with a peak of 300 GB/s, on so many cores, and kept.
TABLE = [
    ("stream --bytes 64M --rate 200GB/s", 32, "stream --bytes 2016M --rate 200GB/s", 32),
    ("bandwidth --bytes 256M --rate 20GB/s", 2, "bandwidth --bytes 2016M --rate 20GB/s", 2),
    ("gather --bytes 64M", 1, "gather --bytes 2016M", 1),
    ("mix gather:9:256M integer:9", 1, "mix gather:9:1008M integer:9", 1),
    ("chase --bytes 64M", 1, "chase --bytes 756M", 1),
    ("tree --bytes 64M", 1, "tree --bytes 504M", 1),
    ("capacity --bytes 252M --rate 20M", 1, "capacity --bytes 252M --rate 8GB/s", 1),
    ("bandwidth --bytes 2016M --rate 20GB/s", 1, "bandwidth --bytes 2016M --rate 20GB/s", 2),
    ("bandwidth --bytes 2016M --rate 1GB/s", 1, "bandwidth --bytes 2016M --rate 15GB/s", 1),
    ("stream --bytes 2016M", 1, "stream --bytes 2016M", 16),
]


def test_each_rule_on_a_cache_of_504_mib():
    assert not any(said(kept, more) for _, _, kept, more in TABLE)
    assert_as_before("named-for", {f"{broken} on {cores}": said(broken, cores) for broken, cores, *_ in TABLE})


def test_every_rule_has_a_line_in_the_table_or_a_test():
    assert len(RULES) == 7


def test_a_set_that_goes_through_a_small_cache_stays_in_a_large_one():
    assert said("stream --bytes 64M", cache=LastLevel(24 * MIB, 12), peak=None) == ""
    assert said("stream --bytes 64M", cache=LastLevel(24 * MIB, 12, caches=2), peak=None)  # threads on two caches


def test_half_a_cache_is_held_by_a_rate_and_not_by_a_size():
    """Whatever the size of the cache: 20 million visits a second hold half of none against 10 GB/s."""
    for mib in (16, 504):
        cache = LastLevel(mib * MIB, 16)
        assert "does not hold its part" in said(f"capacity --bytes {mib // 2}M --rate 20M", cache=cache, peak=None)
        assert said(f"capacity --bytes {mib // 2}M --rate 5GB/s", cache=cache, peak=None) == ""


def test_what_is_to_saturate_is_labelled_where_it_cannot():
    one = member("stream --bytes 2016M", cores=1, name="stream-socket")
    (first, *_) = cautions([one], lambda _: GRANITE, SERVER, {"stream-socket"})
    assert first == "stream-socket: 32 cores saturate the memory of a package, and only 1 is left for it here."
    assert "memory may give far more" in said("stream --bytes 2016M", cores=1, peak=SMALL)


def test_an_unknown_cache_is_named_once():
    two = [member("stream --bytes 128M", name=name) for name in ("a", "b")]
    (sentence,) = cautions(two, lambda _: None, None)
    assert "32 MiB, which was assumed" in sentence


def test_programs_of_others_are_not_judged():
    foreign = Workload(command="stream --bytes 1M")
    found = member_of("x", "lead", Seat((0,), ()), foreign, Prepared(environment_key=None, content=""))
    assert cautions([found], lambda _: GRANITE, None) == ()


def test_no_size_of_the_catalogue_breaks_a_rule_on_a_cache_of_504_mib():
    """With the same sizes in bytes on all machines, most did."""
    path = CATALOGUE / "kernels.yaml"
    entries = read_keys(Catalogue, path.read_text(encoding="utf-8"), str(path))
    stock = gather_catalogue([(str(path), entries)], Study(name="none"), "none", ["native"])
    place = CachePlace((0,), GRANITE, 1 << 40)
    leads = {"tree-in-cache"}  # which are no antagonists: small, so that an antagonist takes them whole
    there = [
        member(" ".join(sized_workload(one, place).words), name=name)
        for name, one in stock.items()
        if name not in leads
    ]
    assert cautions(there, lambda _: GRANITE, None) == ()
