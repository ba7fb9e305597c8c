"""What `mixes` makes of its keys: random mixes drawn on from the list that is there, pairs, and groups."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from castmates.errors import CastmatesError
from castmates.study.catalogue import NO_PROGRAM, Workloads
from castmates.study.drawing import Tally, Terms, drawn_on
from castmates.study.mitigations import WantedMix
from castmates.study.mix_keys import ArrangedMix, MadeMix, MixSets, RandomMixes, SetName
from castmates.study.model import Study, Workload
from castmates.study.reading import did_you_mean
from castmates.study.remarks import MIXES, Remark
from castmates.study.spec import Drawn, DrawnMix, MixSet, Variant
from castmates.study.workload_keys import VariantKeys

SHOWN = 3  # mixes that a remark names
_OF_NONE = Terms(0, (), (), range(0))


@dataclass(frozen=True)
class MadeMixes:
    """The mixes of a study that are not written out, and what its plan keeps of them."""

    mixes: Sequence[MadeMix] = ()
    drawn: Drawn | None = None
    sets: tuple[MixSet, ...] = ()
    notes: tuple[Remark, ...] = ()


def make_mixes(study: Study, workloads: Workloads, before: Drawn | None, study_file: str, plan_file: str) -> MadeMixes:
    """The mixes that the keys of a study make; `before` are those that were drawn when it was planned last."""
    keys = study.mixes
    if not isinstance(keys, MixSets):
        return MadeMixes(drawn=before)
    pool = _Pool(study, workloads, study_file)
    parts: dict[SetName, Sequence[DrawnMix]] = {}
    of_random, notes = _OF_NONE, tuple[Remark, ...]()
    if keys.random:
        terms = _terms(keys.random, pool)
        _refuse(keys.random, terms, before, study_file, plan_file)
        drawn = drawn_on(terms, before.mixes if before else (), keys.random.count)
        before = Drawn(seed=keys.random.seed, mixes=tuple(drawn))
        chosen = [mix for mix in drawn if terms.allow(mix)][: keys.random.count]
        parts["random"] = [DrawnMix(lead=mix.lead, antagonists=mix.antagonists * keys.random.copies) for mix in chosen]
        of_random, notes = terms, tuple(Remark(about=MIXES, text=text) for text in _notes(drawn, chosen, terms))
    if keys.pairs:
        parts["pairs"] = _pairs(pool.own * (2 if keys.pairs == "all" else 1))
    if keys.groups:
        groups = [_pairs(pool.named(group, f"mixes.groups.{at}")) for at, group in enumerate(keys.groups, start=1)]
        parts["groups"] = list(dict.fromkeys(pair for group in groups for pair in group))
    for name, mixes in parts.items():
        if not mixes:
            raise CastmatesError(f"{study_file}: 'mixes.{name}' makes no mix: it needs two workloads or more.")
    return MadeMixes(
        [rule for name, mixes in parts.items() for rule in _rules(name, mixes, keys.random)],
        before,
        tuple(_set(name, mixes, of_random if name == "random" else _OF_NONE) for name, mixes in parts.items()),
        notes,
    )


def with_made(study: Study, mixes: MadeMixes) -> Study:
    """The study with these mixes among those that are written out."""
    return study.model_copy(update={"mixes": [*study.listed_mixes, *mixes.mixes]})


@dataclass(frozen=True)
class _Pool:
    """What the names in a study stand for."""

    study: Study
    workloads: Workloads
    study_file: str

    @property
    def own(self) -> list[str]:
        """Its leads and antagonists, each once."""
        return list(dict.fromkeys((*self.study.leads, *self.study.antagonists)))

    def named(self, names: Iterable[str], key: str) -> list[str]:
        """The workloads of these names and tags; a name that is both is the workload."""
        return [workload for name in names for workload in self._of(name, key)]

    def _of(self, name: str, key: str) -> list[str]:
        if name in self.workloads:
            return [name]
        tagged = [each for each, workload in self.workloads.items() if name in workload.tags]
        modelled = self.study.platform == "modelled"
        able = [each for each in tagged if (self.workloads[each].model if modelled else self.workloads[each].command)]
        if able:
            return able
        if tagged:
            lacks = "a 'model', which a study with 'platform: modelled' needs" if modelled else "a 'command'"
            raise CastmatesError(f"{self.study_file}: no workload with the tag '{name}' in '{key}' has {lacks}.")
        known = {tag for workload in self.workloads.values() for tag in workload.tags}
        meant = did_you_mean(name, [*self.workloads, *sorted(known)])
        raise CastmatesError(
            f"{self.study_file}: '{name}' in '{key}' is neither a workload nor a tag of the catalogue{meant} "
            "(`castmates workloads` lists what there is)."
        )


def _terms(keys: RandomMixes, pool: _Pool) -> Terms:
    """From what mixes are drawn."""
    names = list(dict.fromkeys(pool.named(keys.pool, "mixes.random.from"))) if keys.pool else pool.own
    least, most = keys.antagonists
    return Terms(keys.seed, pool.study.leads or names, names, range(least, most + 1))


def _refuse(keys: RandomMixes, terms: Terms, before: Drawn | None, study_file: str, plan_file: str) -> None:
    """Refuse what cannot be drawn, and a list that would be drawn anew."""
    if before and before.seed != keys.seed:
        raise CastmatesError(
            f"{study_file}: 'mixes.random.seed' is {keys.seed}, but the {len(before.mixes)} mixes in {plan_file} were "
            f"drawn with {before.seed}, and are never drawn again; put {before.seed} back, or rename the study."
        )
    if not terms.pool:
        raise CastmatesError(
            f"{study_file}: 'mixes.random' has nothing to draw from; give it 'from', or give the study 'leads' and "
            "'antagonists'."
        )
    if not terms.possible(terms.sizes[-1]):
        raise CastmatesError(
            f"{study_file}: 'mixes.random.antagonists' asks for {terms.sizes[-1]} beside a lead, but there are only "
            f"{max(len(terms.beside(lead)) for lead in terms.leads)} others to draw from."
        )
    if keys.count > terms.most:
        raise CastmatesError(
            f"{study_file}: 'mixes.random.count' is {keys.count}, but only {terms.most} different mixes can be drawn; "
            f"make it {terms.most} or less, or add workloads to 'from'."
        )


def _notes(drawn: Sequence[DrawnMix], chosen: Sequence[DrawnMix], terms: Terms) -> Iterator[str]:
    """How even the draw is, and which of the list are set aside."""
    tally, names = Tally.of(chosen), list(dict.fromkeys((*terms.leads, *terms.pool)))
    if set(terms.leads) == set(names):
        met, words = [tally.met[frozenset(pair)] for pair in combinations(names, 2)], "meets each other one"
    else:
        met = [tally.beside[lead, name] for lead in terms.leads for name in terms.beside(lead)]
        words = "has each other one beside it"
    yield (
        f"{len(chosen)} are drawn at random from {len(names)} workloads (seed {terms.seed}): each lead leads "
        f"{_span([tally.leads[lead] for lead in terms.leads])} and {words} {_span(met)}."
    )
    aside = [mix for mix in drawn if not terms.allow(mix)]
    if aside:
        named = ", ".join(_name(mix) for mix in aside[:SHOWN]) + (" …" if len(aside) > SHOWN else "")
        what = "a mix that was drawn is" if len(aside) == 1 else f"{len(aside)} mixes that were drawn are"
        yield (
            f"{what} set aside, because the study no longer allows {'it' if len(aside) == 1 else 'them'}: "
            f"{named}; others are drawn in their place, and what was measured is kept."
        )


def _span(counts: Sequence[int]) -> str:
    least, most = min(counts), max(counts)
    times = f"{most} times" if most != 1 else "once"
    return times if least == most else f"{least} to {most} times"


def _pairs(names: Sequence[str]) -> list[DrawnMix]:
    """Each as lead beside each other one; a name that is there twice also beside itself."""
    counts = Counter(names)
    return [
        DrawnMix(lead=lead, antagonists=(other,))
        for lead in counts
        for other in counts
        if lead != other or counts[lead] > 1
    ]


def _rules(name: SetName, mixes: Sequence[DrawnMix], keys: RandomMixes | None) -> Iterator[MadeMix]:
    fewest = keys.antagonists[0] * keys.copies if keys and name == "random" else 1
    for mix in mixes:
        insists = len(mix.antagonists) == fewest
        yield MadeMix(lead=mix.lead, antagonists=list(mix.antagonists), made_by=name, insists=insists)


def _set(name: str, mixes: Sequence[DrawnMix], terms: Terms) -> MixSet:
    return MixSet(name=name, mixes=tuple(map(_name, mixes)), leads=tuple(terms.leads), pool=tuple(terms.pool))


def _name(mix: DrawnMix) -> str:
    return WantedMix(mix.lead, mix.antagonists).name


# Variants of leads: a study with a workload and a lead for each of them, beside everything that the lead is beside.
#
# The variant `int8` of `bert-infer` is the lead `bert-infer.int8`, and behaves like every other lead.

OF_THE_LEAD = "."  # between a lead and the name of its variant
SIZES = ("batch",)  # options that change how much work a step is


def variant_name(lead: str, variant: str) -> str:
    """What the lead is called that is this variant of another one."""
    return f"{lead}{OF_THE_LEAD}{variant}"


def with_variants(
    study: Study, workloads: Mapping[str, Workload], study_file: str
) -> tuple[Study, dict[str, Workload]]:
    """The study with its variants among leads and mixes, and all workloads; a study that has them is as before."""
    if not study.variants:
        return study, dict(workloads)
    _refuse_strangers(study, study_file)
    made = {
        variant_name(lead, each.name): _made(lead, each, workloads, study, study_file)
        for lead, variants in study.variants.items()
        for each in variants
        if lead in workloads  # one that is not in the catalogue is refused by its name, as every lead is
    }
    leads = [name for lead in study.leads for name in (lead, *_not_in(study.leads, study, lead))]
    keys = study.mixes
    mixes: Any = (
        keys.model_copy(update={"listed": list(_variants_rules(study, keys.listed))})
        if isinstance(keys, MixSets)
        else list(_variants_rules(study, keys))
    )
    changes = {"leads": leads, "mixes": mixes, "workloads": {**study.workloads, **made}}
    return study.model_copy(update=changes), {**workloads, **made}


def variants_of(study: Study) -> tuple[Variant, ...]:
    """The variants of a study as its plan keeps them."""
    return tuple(
        Variant(
            lead=lead,
            name=each.name,
            workload=variant_name(lead, each.name),
            work=each.work or 1.0,
            words=each.in_words,
        )
        for lead, variants in study.variants.items()
        for each in variants
    )


def _made(
    lead: str, variant: VariantKeys, workloads: Mapping[str, Workload], study: Study, study_file: str
) -> Workload:
    """The workload of a variant."""
    base, name = workloads[lead], variant_name(lead, variant.name)
    if base.requests:
        raise CastmatesError(
            f"{study_file}: '{lead}' in 'variants' is an open-loop service; variants are compared by rate, which its "
            "load decides. Take it out of 'variants'."
        )
    for option in SIZES:
        if option in variant.options and variant.options[option] != base.options.get(option) and variant.work is None:
            raise CastmatesError(
                f"{study_file}: the variant '{variant.name}' of '{lead}' has another '{option}', so its step is "
                "another amount of work; add 'work', how many of the lead's steps one of its own is worth, such as 4."
            )
    made = base.model_copy(
        update={
            "title": variant.title or f"{base.title}, {variant.name}",
            "options": {**base.options, **variant.options},
            "variables": {**base.variables, **variant.variables},
            "tags": [],  # what a study names by a tag is not measured once more in each variant
            **variant.changes,
        }
    )
    if name in workloads and _played(workloads[name], study) != _played(made, study):
        raise CastmatesError(
            f"{study_file}: the variant '{variant.name}' of '{lead}' would be called '{name}', but there is another "
            "workload of this name; rename one of them."
        )
    return made


def _played(workload: Workload, study: Study) -> dict[str, Any]:
    """What of a workload this study's platform uses: a published study has no more of it."""
    return workload.model_dump(exclude=set(NO_PROGRAM) if study.platform == "modelled" else {"model"})


def _refuse_strangers(study: Study, study_file: str) -> None:
    """Refuse variants of what is no lead, and two of one name."""
    leads = list(dict.fromkeys([*study.leads, *(rule.lead for rule in study.listed_mixes)]))
    for lead, variants in study.variants.items():
        names = [each.name for each in variants]
        if not {lead, *(variant_name(lead, name) for name in names)} & {*leads}:
            raise CastmatesError(
                f"{study_file}: '{lead}' in 'variants' is no lead of this study{did_you_mean(lead, leads)} (its leads "
                f"are: {', '.join(leads) or 'none'})."
            )
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise CastmatesError(f"{study_file}: '{lead}' has two variants called '{twice}'; rename one of them.")


def _not_in(names: Sequence[str], study: Study, lead: str) -> Iterator[str]:
    """The variants of a lead that are not among these names."""
    for each in study.variants.get(lead, ()):
        if (name := variant_name(lead, each.name)) not in names:
            yield name


def _variants_rules(study: Study, rules: Sequence[ArrangedMix]) -> Iterator[ArrangedMix]:
    """Each mix, and after it the same with each variant of its lead."""
    for rule in rules:
        yield rule
        for each in study.variants.get(rule.lead, ()):
            other = rule.model_copy(update={"lead": variant_name(rule.lead, each.name)})
            if other not in rules:
                yield other
