"""Variants of leads: a study with a workload and a lead for each of them, beside everything that the lead is beside.

The variant `int8` of `bert-infer` is the lead `bert-infer.int8`, and behaves like every other lead.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from castmates.errors import CastmatesError
from castmates.study.catalogue import NO_PROGRAM
from castmates.study.mix_keys import ArrangedMix
from castmates.study.mix_sets import MixSets
from castmates.study.model import Study, Workload
from castmates.study.reading import did_you_mean
from castmates.study.spec import Variant
from castmates.study.variant_keys import VariantKeys

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
        keys.model_copy(update={"listed": list(_rules(study, keys.listed))})
        if isinstance(keys, MixSets)
        else list(_rules(study, keys))
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


def _rules(study: Study, rules: Sequence[ArrangedMix]) -> Iterator[ArrangedMix]:
    """Each mix, and after it the same with each variant of its lead."""
    for rule in rules:
        yield rule
        for each in study.variants.get(rule.lead, ()):
            other = rule.model_copy(update={"lead": variant_name(rule.lead, each.name)})
            if other not in rules:
                yield other
