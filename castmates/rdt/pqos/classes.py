"""Which class of service each CPU is to be in, and what each class is to have; pure.

pqos associates CPUs, not processes: a member has what its CPUs have. Members of one launch may be on the same CPUs, one
of them frozen; then those that a share names decide. Class 0 is for everything that is not a member.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from castmates.errors import CastmatesError
from castmates.machine.pqos_text import State
from castmates.protocols import Held
from castmates.rdt.resctrl.schemata import CODE, DATA, L3, MB, Schemata
from castmates.rdt.resctrl.wanted_schemata import everything, name_of, wanted_schemata, within
from castmates.study.cache import Cache
from castmates.study.cpus import format_cpu_list
from castmates.study.spec import REST, Share

DEFAULT = 0


@dataclass(frozen=True)
class Arrangement:
    """Classes and CPUs as they are to be."""

    classes: dict[int, Schemata]
    cores: dict[int, int]  # CPU -> class


def arrange(
    shares: Sequence[Share], members: Mapping[str, Held], former: State, cache: Cache, beyond_site: bool = False
) -> Arrangement:
    """Give a class to everyone with another share; all other CPUs are in the default class."""
    base = schemata_of(former, DEFAULT, cache)
    everybody = everything(cache, base)
    unless_named = {REST: base} | dict.fromkeys(members, everybody if beyond_site else within(everybody, base))
    wanted = wanted_schemata(shares, unless_named, domains_of(members, former), cache)
    named = {share.member for share in shares}
    classes: dict[int, Schemata] = {DEFAULT: wanted[REST]}
    cores = dict.fromkeys(former.cores, DEFAULT)
    owners: dict[int, str] = {}
    for name in sorted(members, key=lambda name: name in named):  # those that a share names come last, and win
        number = _class_for(wanted[name], classes, cache)
        for cpu in members[name].cpus:
            other = owners.get(cpu)
            if name in named and other in named and wanted[name] != wanted[other or ""]:
                raise CastmatesError(
                    f"{other} and {name} are both on CPU {cpu} and have different shares: pqos gives shares to CPUs, "
                    "so put them on different ones, or write 'cache.driver: resctrl'."
                )
            owners[cpu] = name
            cores[cpu] = number
    return Arrangement(classes, cores)


def domains_of(members: Mapping[str, Held], former: State) -> dict[str, set[int]]:
    """Return the last-level caches on which each member has CPUs, in pqos' numbers; REST has all that members use."""
    result: dict[str, set[int]] = {}
    for name, held in members.items():
        if unknown := set(held.cpus) - set(former.cores):
            raise CastmatesError(
                f"pqos does not know CPU {format_cpu_list(unknown)} of {name}: bring it online, or plan the study anew."
            )
        result[name] = {former.cores[cpu][0] for cpu in held.cpus}
    return result | {REST: set().union(*result.values())}


def schemata_of(state: State, number: int, cache: Cache) -> Schemata:
    """Return what a class has, in the kernel's words."""
    masks = {domain: mask for (domain, its), mask in state.masks.items() if its == number}
    result: Schemata = {}
    if masks and cache.cdp:
        result[DATA] = {domain: data for domain, (data, _) in masks.items()}
        result[CODE] = {domain: code for domain, (_, code) in masks.items()}
    elif masks:
        result[L3] = {domain: data for domain, (data, _) in masks.items()}
    throttles = {domain: value for (domain, its), value in state.throttles.items() if its == number}
    return result | ({MB: throttles} if throttles else {})


def as_state(arrangement: Arrangement, former: State) -> State:
    """Return the whole machine as it is to be: classes that are not used stay as they were found."""
    masks, throttles = dict(former.masks), dict(former.throttles)
    for number, schemata in arrangement.classes.items():
        for domain, data in schemata.get(DATA, schemata.get(L3, {})).items():
            masks[domain, number] = data, schemata.get(CODE, {}).get(domain, data)
        throttles |= {(domain, number): value for domain, value in schemata.get(MB, {}).items()}
    cores = {cpu: (domain, arrangement.cores.get(cpu, DEFAULT)) for cpu, (domain, _) in former.cores.items()}
    return State(masks, throttles, former.unit, cores)


def _class_for(wanted: Schemata, classes: dict[int, Schemata], cache: Cache) -> int:
    """Find the class that has what is wished, or take the next one."""
    for number, schemata in classes.items():
        if schemata == wanted:
            return number
    number = len(classes)
    if number > cache.groups:
        raise CastmatesError(
            f"the shares of one scene need more than the {cache.groups + 1} classes that this processor has; give "
            f"several members the same share ({name_of(REST)} has a separate class)."
        )
    classes[number] = wanted
    return number
