"""A sweep and a machine's cache -> cuts: who gets which ways and how much bandwidth, by role, not by member."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product

from castmates.english import listed
from castmates.errors import CastmatesError
from castmates.study import masks
from castmates.study.cache import Cache
from castmates.study.partition_keys import CacheKeys, Masks, Sweep
from castmates.study.partitions.amounts import Notes, rates_from, ways_from
from castmates.study.spec import UNMANAGED, Partition

MOST_CUTS = 500  # of one study; more is a mistake rather than a plan
MOST_NAMED = 5  # partitions in one sentence


@dataclass(frozen=True)
class Part:
    """What one role or workload gets; None is everything."""

    mask: int | None = None  # of ways; of those for data only, where `code` has a mask too
    code: int | None = None
    bandwidth: int | None = None


@dataclass(frozen=True)
class Cut:
    """A partition by roles."""

    name: str
    curve: str  # its name without the lead's ways
    alone: bool = False  # the lead runs alone under it
    lead: Part = Part()
    antagonists: Part = Part()
    named: Mapping[str, Part] = field(default_factory=dict)  # workloads that get their own share
    rest: int | None = None


@dataclass(frozen=True)
class _Ground:
    """What a sweep is laid out on."""

    keys: CacheKeys
    cache: Cache
    key: str  # of the sweep, for sentences: cache.sweeps.1
    notes: Notes
    region: int

    @property
    def size(self) -> int:
        """How many ways it has."""
        return masks.popcount(self.region)

    def ways(self, texts: Iterable[str], key: str, most: int, all_to: int, least: int | None = None) -> list[int]:
        """The numbers of ways that a key asks for; `all` goes up to `all_to`."""
        low = masks.fewest(self.cache) if least is None else least
        return ways_from(texts, self.cache, (low, most), range(low, all_to + 1), f"{self.key}.{key}", self.notes)

    def takes(self, cut: "Cut") -> bool:
        """Whether the kernel would take every mask of a cut; ways that I/O leaves over can lie too far apart."""
        wanted = [cut.lead.mask, cut.lead.code, cut.antagonists.mask, cut.rest]
        refused = [masks.refusal(mask, self.cache) for mask in wanted if mask is not None]
        for sentence in filter(None, refused):
            self.notes.add(self.key, f"{cut.name} left out: {sentence}.")
        return not any(refused)

    def others(self, taken: int, name: str) -> int | None:
        """The ways beside these: all of them where a mask may have holes, else the larger piece; None for too few."""
        left = masks.without(self.region, taken)
        mask = left if self.cache.sparse else masks.longest_run(left)
        if mask != left:
            self.notes.add(self.key, f"{name} gives the others {masks.size_words(mask, self.cache)}, the larger side.")
        return mask if masks.popcount(mask) >= masks.fewest(self.cache) else None


def cuts(keys: CacheKeys, cache: Cache, study_file: str, notes: Notes) -> list[Cut]:
    """All partitions that a study asks for, by roles, each once; what this machine cannot give is noted."""
    by_name: dict[str, Cut] = {}
    region = masks.region(cache, keys.avoid_shared)
    for number, sweep in enumerate(keys.sweeps, start=1):
        ground = _Ground(keys, cache, f"cache.sweeps.{number}", notes, region)
        own = list(islice(_cuts(sweep, ground, f"{study_file}: '{ground.key}"), MOST_CUTS + 1))
        if not own:
            notes.add(ground.key, "nothing is left of this sweep on this machine.")
        for cut in own:
            if by_name.setdefault(cut.name, cut) != cut:
                raise CastmatesError(
                    f"{study_file}: '{ground.key}' makes a partition '{cut.name}', and so does another sweep, with "
                    "other shares; give one of them another 'name'."
                )
        if len(by_name) > MOST_CUTS:
            raise CastmatesError(
                f"{study_file}: 'cache.sweeps' make more than {MOST_CUTS} partitions; name fewer values."
            )
    wanted = [by_name[name] for name in keys.only if name in by_name] if keys.only else list(by_name.values())
    if missing := [name for name in keys.only if name not in by_name]:
        notes.add("cache.only", f"{', '.join(missing)} left out: no sweep makes it on this machine.")
    _note_equal(wanted, notes)
    _note_shared(wanted, cache, notes)
    _note_cutting(wanted, cache, notes)
    return wanted


def _cuts(sweep: Sweep, ground: _Ground, where: str) -> Iterator[Cut]:
    makers: dict[str, Callable[[Sweep, _Ground], Iterable[Cut]]] = {
        "split": _split,
        "lead_ways": _lead_ways,
        "overlap": _overlap,
        "antagonist_cap": _antagonist_cap,
        "bandwidth": lambda *_: [Cut("", "")],  # everybody has all ways
    }
    divided = _written(sweep, ground, where) if sweep.masks is not None else makers[sweep.kind](sweep, ground)
    rates = _rates(sweep, ground)
    for cut in divided:
        for coded in filter(ground.takes, _with_code(cut, sweep, ground)):
            for chosen in product(*rates.values()):
                throttled = _throttled(coded, dict(zip(rates, chosen, strict=True)))
                name = "-".join(filter(None, [sweep.name, throttled.name]))
                if name == UNMANAGED:
                    raise CastmatesError(
                        f"{where}.name' is {name}, which is what no partition is called; choose another."
                    )
                yield replace(throttled, name=name, curve="-".join(filter(None, [sweep.name, throttled.curve])))


def _split(sweep: Sweep, ground: _Ground) -> Iterator[Cut]:
    most = ground.size - masks.fewest(ground.cache)
    for ways in ground.ways(sweep.split or (), "split", most, most):
        for side, lead in _placed(ways, sweep.position, ground, "split"):
            name = f"split-{ways}{side}"
            if (others := ground.others(lead, name)) is None:
                ground.notes.add(ground.key, f"{name} left out: too few ways lie beside it.")
                continue
            yield Cut(name, f"split{side}", lead=Part(lead), antagonists=Part(others), rest=_rest(others, ground))


def _lead_ways(sweep: Sweep, ground: _Ground) -> Iterator[Cut]:
    # With all ways that there are it is the scene `alone`, which every cohort has.
    all_to = ground.size - (ground.region == ground.cache.usable)
    for ways in ground.ways(sweep.lead_ways or (), "lead_ways", ground.size, all_to):
        for side, lead in _placed(ways, sweep.position, ground, "lead_ways"):
            name = f"lead-{ways}{side}"
            others = ground.others(lead, name) if lead != ground.region else None
            if others is None and lead != ground.cache.usable and ground.keys.rest != "all":
                ground.notes.add(
                    ground.key,
                    f"{name} leaves too few ways for everybody else on the machine, who therefore has "
                    "all, the lead's too.",
                )
            yield Cut(name, f"lead{side}", alone=True, lead=Part(lead), rest=_rest(others, ground))


def _overlap(sweep: Sweep, ground: _Ground) -> Iterator[Cut]:
    halved = [max(masks.fewest(ground.cache), ground.size // 2)]
    for own in ground.ways(sweep.lead, "lead", ground.size, ground.size - 1) if sweep.lead else halved:
        for shared in ground.ways(sweep.overlap or (), "overlap", own, own, least=0):
            others = ground.size - own + shared
            if others < masks.fewest(ground.cache):
                ground.notes.add(ground.key, f"overlap-{shared}-lead-{own} left out: nothing is left for the others.")
                continue
            for side, lead in _placed(own, sweep.position, ground, "lead"):
                mask = masks.pick(ground.region, others, 0 if side else ground.size - others)
                name = f"overlap-{shared}-lead-{own}{side}"
                curve = f"overlap-{shared}-lead{side}"
                yield Cut(name, curve, lead=Part(lead), antagonists=Part(mask), rest=_rest(mask, ground))


def _antagonist_cap(sweep: Sweep, ground: _Ground) -> Iterator[Cut]:
    for own in ground.ways(sweep.lead, "lead", ground.size, ground.size - 1) if sweep.lead else [None]:
        for cap in ground.ways(sweep.antagonist_cap or (), "antagonist_cap", ground.size, ground.size - 1):
            for place in dict.fromkeys(sweep.position):
                high = place == "high"
                others = masks.pick(ground.region, cap, 0 if high else ground.size - cap)
                lead = None
                if own is not None:
                    lead = masks.pick(ground.region, own, ground.size - own if high else 0)
                side = "-high" if high else ""
                name = f"cap-{cap}" + (f"-lead-{own}" if own is not None else "") + side
                curve = f"cap-{cap}" + ("-lead" if own is not None else "") + side
                yield Cut(name, curve, lead=Part(lead), antagonists=Part(others), rest=_rest(others, ground))


def _placed(ways: int, sides: Sequence[str], ground: _Ground, key: str) -> Iterator[tuple[str, int]]:
    """The lead's mask at every position that was asked for, with what the position adds to the name."""
    for side in dict.fromkeys(sides):
        start = {"low": 0, "high": ground.size - ways}.get(side)
        start = int(side) if start is None else start
        if start + ways > ground.size:
            ground.notes.add(
                f"{ground.key}.{key}", f"{ways} from way {start} on left out: there are {ground.size} ways."
            )
            continue
        yield {"low": "", "high": "-high"}.get(side, f"-at-{side}"), masks.pick(ground.region, ways, start)


def _rest(others: int | None, ground: _Ground) -> int | None:
    return None if ground.keys.rest == "all" else others


def _written(sweep: Sweep, ground: _Ground, where: str) -> Iterator[Cut]:
    """Masks as they were written; what the kernel would refuse is an error: only who wrote it knows what was meant."""
    if not ground.cache.ways:
        ground.notes.add(f"{ground.key}.masks", "this machine has no masks of the last-level cache.", left_out=True)
        return
    written = sweep.masks or {}
    parts = {who: _part(own, ground, f"{where}.masks.{who}'") for who, own in written.items()}
    name = "" if sweep.name else "-".join(f"{who}-{_digits(own, ground)}" for who, own in written.items())
    roles = {who: parts.pop(who, Part()) for who in ("lead", "antagonists", "rest")}
    rest = roles["rest"].mask if "rest" in written else _rest(roles["antagonists"].mask, ground)
    if parts and rest is None and ground.keys.rest != "all":
        ground.notes.add(
            f"{ground.key}.masks",
            "everybody else on the machine has all ways, because the role antagonists has no "
            "mask; write one for 'rest' if they should not.",
        )
    yield Cut(name, name, lead=roles["lead"], antagonists=roles["antagonists"], named=parts, rest=rest)


def _part(written: Masks, ground: _Ground, where: str) -> Part:
    mask = masks.parse(written.data)
    code = masks.parse(written.code) if written.code is not None else None
    for each in (mask, code):
        if each is not None and (refused := masks.refusal(each, ground.cache)):
            raise CastmatesError(f"{where}: {refused}; write another mask.")
    if code is not None and not ground.cache.cdp:
        raise CastmatesError(f"{where}: {_NO_CDP}.")
    return Part(mask, code)


_NO_CDP = "resctrl is not mounted with cdp here, so that code cannot have separate ways"


def _digits(written: Masks, ground: _Ground) -> str:
    texts = [masks.text_of(masks.parse(mask), ground.cache.ways) for mask in (written.data, written.code) if mask]
    return ".".join(texts)


def _with_code(cut: Cut, sweep: Sweep, ground: _Ground) -> Iterator[Cut]:
    """The lead's ways divided between code and data, where the sweep asks for it."""
    if sweep.code is None:
        yield cut
        return
    if not ground.cache.cdp:
        ground.notes.add(f"{ground.key}.code", f"{_NO_CDP}.", left_out=True)
        return
    own = cut.lead.mask or 0
    size, least = masks.popcount(own), masks.fewest(ground.cache)
    for ways in ground.ways(sweep.code, f"code with {cut.name}", size - least, size - least):
        code = masks.pick(own, ways)
        coded = replace(cut, lead=Part(masks.without(own, code), code))
        yield replace(coded, name=f"{cut.name}-code-{ways}", curve=f"{cut.curve}-code-{ways}")


def _rates(sweep: Sweep, ground: _Ground) -> dict[str, list[int]]:
    """By role or workload: its throttles, none where the machine has none; none where the sweep asks for none."""
    wanted, bandwidth = sweep.bandwidth or {}, ground.cache.bandwidth
    if bandwidth is None:
        if wanted:
            ground.notes.add(f"{ground.key}.bandwidth", "this machine cannot throttle memory bandwidth.", left_out=True)
        return {who: [] for who in wanted}
    return {
        who: rates_from(texts, bandwidth, f"{ground.key}.bandwidth.{who}", ground.notes)
        for who, texts in wanted.items()
    }


def _throttled(cut: Cut, chosen: Mapping[str, int]) -> Cut:
    named = dict(cut.named)
    for who, value in chosen.items():
        if who not in ("lead", "antagonists"):
            named[who] = replace(named.get(who, Part()), bandwidth=value)
    throttles = [f"{who}-mb{value}" for who, value in chosen.items()]
    return replace(
        cut,
        name="-".join(filter(None, [cut.name, *throttles])),
        curve="-".join(filter(None, [cut.curve, *throttles])),
        lead=replace(cut.lead, bandwidth=chosen.get("lead")),
        antagonists=replace(cut.antagonists, bandwidth=chosen.get("antagonists")),
        named=named,
    )


def _note_equal(wanted: Collection[Cut], notes: Notes) -> None:
    """Note which partitions are the same under two names: both are measured, because either may be meant."""
    first: dict[str, str] = {}
    for cut in wanted:
        if (same := first.setdefault(repr(replace(cut, name="", curve="")), cut.name)) != cut.name:
            notes.add("cache", f"{cut.name} gives everybody the same as {same}; both are measured.")


def _note_shared(wanted: Collection[Cut], cache: Cache, notes: Notes) -> None:
    """Note who shares ways with I/O."""
    holders = {"the lead": 0, "the antagonists": 0}
    for cut in wanted:
        for who, part in (("the lead", cut.lead), ("the antagonists", cut.antagonists)):
            holders[who] += bool((part.mask or 0) & cache.shareable)
    holding = [f"{who} in {count}" for who, count in holders.items() if count]
    if holding:
        notes.add(
            "cache",
            f"I/O fills the ways {cache.shareable:#x} too; they are given to "
            f"{' and to '.join(holding)} of the {len(wanted)} partitions ('cache.avoid_shared: true' leaves them out).",
        )


def _note_cutting(wanted: Collection[Cut], cache: Cache, notes: Notes) -> None:
    """Note which partitions may not be what they look like."""
    names = [cut.name for cut in wanted if cut_by_any(_masks(cut), cache)]
    if names:
        notes.add(
            "cache",
            f"{some_of(names)} cut{'s' * (len(names) == 1)} through the ways "
            f"{cache.shareable:#x} that I/O fills too: some processors give these ways "
            "together only, which the kernel does not show, so no such partition is chosen as isolating.",
        )


def _masks(cut: Cut) -> Iterator[int | None]:
    """Every mask of a cut, code's and data's apart."""
    for part in (cut.lead, cut.antagonists, *cut.named.values()):
        yield from (part.mask, part.code)
    yield cut.rest


def some_of(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[:MOST_NAMED])} and {len(names) - MOST_NAMED} more"
    return listed(names)


# Masks that cut through the ways that I/O fills too: they have some of these ways, but not all.
#
# Some processors give these ways together only, so that such a mask has more ways than were asked for, and two masks
# that look separate overlap. The kernel does not show it.


def cut_ways(mask: int, shareable: int) -> int:
    """The ways that I/O fills too, those that lie side by side, of which a mask has some but not all."""
    return masks.union(run for run in masks.runs(shareable) if mask & run not in (0, run))


def cut_by_any(wanted: Iterable[int | None], cache: Cache | None) -> bool:
    """Whether any of these masks does; None is no mask. Where I/O fills all ways there is nothing to cut through."""
    if cache is None or cache.shareable == cache.full:
        return False
    return any(mask is not None and cut_ways(mask, cache.shareable) for mask in wanted)


def cut_by(partition: Partition, cache: Cache | None) -> bool:
    """Whether the mask of anybody under this partition does, code's and data's apart."""
    return cut_by_any((mask for share in partition.shares for mask in (share.ways, share.code)), cache)
