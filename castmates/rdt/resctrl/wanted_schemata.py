"""What a group is to have: shares turned into schemata, and whether what is read back is what was asked."""

from collections.abc import Collection, Mapping, Sequence

from castmates.errors import CastmatesError
from castmates.machine.resctrl_state import as_lines, settings
from castmates.protocols import HeldOtherwise
from castmates.study.cache import Cache
from castmates.study.spec import REST, Share

# Schemata as the kernel writes and takes them, one line for each resource: `L3:0=7ff;1=7ff`, `MB:0=100;1= 50`.

L3, CODE, DATA, MB = "L3", "L3CODE", "L3DATA", "MB"
MASKS = (L3, CODE, DATA)  # of the last-level cache
DECIMAL = ("MB", "SMBA", "GMB", "GSMBA")  # throttles; everything else is a way mask

Schemata = dict[str, dict[int, int]]  # resource -> domain -> way mask or throttle


def parse(text: str) -> Schemata:
    """Read schemata, padded or not, in several lines or in one."""
    schemata: Schemata = {}
    for (resource, domain), value in settings(text).items():
        try:
            schemata.setdefault(resource, {})[int(domain)] = int(value, 10 if is_decimal(resource) else 16)
        except ValueError:
            raise CastmatesError(
                f"'{resource}:{domain}={value}' in resctrl's schemata is not understood; expected a line such as"
                " L3:0=7ff;1=7ff or MB:0=100;1=100."
            ) from None
    return schemata


def to_write(schemata: Schemata) -> str:
    """Put schemata as the kernel takes them, all lines in one write."""
    return "".join(f"{line}\n" for line in _lines(schemata))


def one_line(schemata: Schemata) -> str:
    """Put schemata in one line, for records and comparisons: "L3:0=f;1=f MB:0=50;1=50"."""
    return " ".join(_lines(schemata))


def is_decimal(resource: str) -> bool:
    """Check whether a resource's values are decimal numbers rather than masks."""
    return resource.startswith(DECIMAL)


def _lines(schemata: Schemata) -> list[str]:
    return as_lines(
        {
            (resource, str(domain)): str(value) if is_decimal(resource) else f"{value:x}"
            for resource, domains in schemata.items()
            for domain, value in domains.items()
        }
    )


Domains = Mapping[str, Collection[int]]  # member, or REST -> the last-level caches that it uses


def everything(cache: Cache, there: Schemata) -> Schemata:
    """Give all ways and all bandwidth, on the lines that the machine has; other resources are left alone."""
    most = {L3: cache.full, CODE: cache.full, DATA: cache.full}
    if cache.bandwidth:
        most[MB] = cache.bandwidth.most
    return {
        resource: dict.fromkeys(values, most[resource])
        for resource, values in there.items()
        if resource in most and values
    }


def within(one: Schemata, other: Schemata) -> Schemata:
    """What both of two classes permit."""
    return {
        line: {domain: _both(line, value, other.get(line, {}).get(domain, value)) for domain, value in values.items()}
        for line, values in one.items()
    }


def together(classes: Sequence[Schemata]) -> Schemata:
    """What some of these classes permits."""
    found: Schemata = {}
    for line, values in (item for each in classes for item in each.items()):
        there = found.setdefault(line, dict(values))
        for domain, value in values.items():
            there[domain] = max(there[domain], value) if is_decimal(line) else there[domain] | value
    return found


def with_share(base: Schemata, share: Share, domains: Collection[int], cache: Cache) -> Schemata:
    """Take what a share limits off, on these domains: nobody gets more than the base, which somebody may have narrowed.

    A member has what was planned or nothing; everybody else has what is left of both.
    """
    limits: dict[str, int] = {}
    if share.code is not None and not cache.cdp:
        raise CastmatesError(
            f"a partition gives {name_of(share.member)} a code mask, but resctrl is mounted without cdp, so code and"
            " data have one mask: mount it with -o cdp, or take the code masks out of the study."
        )
    if share.ways is not None:
        limits |= {DATA: share.ways, CODE: share.ways} if cache.cdp else {L3: share.ways}
    if share.code is not None:
        limits[CODE] = share.code
    if share.bandwidth is not None:
        limits[MB] = rounded(share.bandwidth, cache)
    result = {resource: dict(values) for resource, values in base.items()}
    for resource, value in limits.items():
        _limit(result, resource, value, share.member, domains)
        for domain in result[resource].keys() & domains:
            _refuse_too_little(share.member, resource, domain, (value, base[resource][domain]), cache)
    return result


def _both(line: str, one: int, other: int) -> int:
    return min(one, other) if is_decimal(line) else one & other


def _refuse_too_little(member: str, line: str, domain: int, both: tuple[int, int], cache: Cache) -> None:
    """Refuse a share that somebody's class does not permit; of what no class can have the kernel has better words."""
    asked, permitted = both
    left = _both(line, asked, permitted)
    if left == asked or (line in MASKS and asked & ~cache.full):
        return
    asks = f"a partition gives {name_of(member)} {_setting(line, domain, asked)}"
    permits = _setting(line, domain, permitted)
    if member != REST:
        raise CastmatesError(
            f"{asks}, but it was found in a class with {permits}, and stays within that: plan again, write masks within"
            " it, or permit more with 'cache.beyond_site: true'."
        )
    if line in MASKS and left.bit_count() < max(cache.least_ways, 1):
        raise CastmatesError(
            f"{asks}, of which its class, {permits}, leaves too little, and nobody else here is given more than was"
            " found: write `rest: all` under 'cache', or masks that leave it some of its ways."
        )


def _limit(result: Schemata, resource: str, value: int, member: str, domains: Collection[int]) -> None:
    there = result.get(resource)
    if not there:
        what = "no throttle of memory bandwidth" if resource == MB else "no masks of the last-level cache"
        raise CastmatesError(
            f"a partition limits {name_of(member)} ({resource}), but this machine has {what}; take that out of"
            " the study."
        )
    # A throttle may be numbered otherwise than the caches (by memory nodes): then it holds everywhere.
    chosen = [domain for domain in there if domain in domains]
    if not chosen and resource == MB:
        chosen = list(there)
    if not chosen:
        known = ", ".join(map(str, there))
        raise CastmatesError(
            f"{name_of(member)} uses the last-level caches {sorted(domains)}, but resctrl knows {known}: its CPUs'"
            " caches went offline, or have no id in /sys/devices/system/cpu/cpu*/cache; plan the study anew."
        )
    there.update({domain: _both(resource, value, there[domain]) if member == REST else value for domain in chosen})


def wanted_schemata(
    shares: Sequence[Share], base: Mapping[str, Schemata], domains: Domains, cache: Cache
) -> dict[str, Schemata]:
    """Describe what everybody is to have under these shares, REST included; those not named have their base."""
    wanted = dict(base)
    for share in shares:
        if share.member not in base:
            known = ", ".join(name for name in base if name != REST)
            raise CastmatesError(f"a partition names {name_of(share.member)}, which has no group; members are {known}.")
        wanted[share.member] = with_share(base[share.member], share, domains[share.member], cache)
    return wanted


def differences(asked: Schemata, current: Schemata, cache: Cache) -> list[str]:
    """List in words where the machine has something else.

    Arm keeps a throttle in per cent as a binary fraction, which may come back as another number less than a step away;
    on x86 all are whole steps, so that only the same is near enough.
    """
    step = cache.bandwidth.step if cache.bandwidth and cache.bandwidth.unit == "%" else 1
    sentences = []
    for resource, values in asked.items():
        for domain, value in values.items():
            there = current.get(resource, {}).get(domain)
            near = resource == MB and there is not None and value - step < there < value + step
            if there != value and not near:
                sentences.append(
                    f"{_setting(resource, domain, value)} was asked and {_setting(resource, domain, there)} is there"
                )
    return sentences


def to_change(asked: Schemata, there: Schemata) -> Schemata:
    """Return the lines that have to be written: a throttle only where it changes, for kernels round and cut some."""
    throttles, now = asked.get(MB, {}), there.get(MB, {})
    same = all(now.get(domain) == value for domain, value in throttles.items())
    return {line: values for line, values in asked.items() if line != MB or not same}


def order_of_writes(wanted: Mapping[str, Schemata], before: Mapping[str, Schemata]) -> list[str]:
    """Who loses ways comes before who gets them, so that shares that do not overlap never do meanwhile.

    Where groups swap their ways, no order is free of that.
    """
    order: list[str] = []
    while left := [name for name in wanted if name not in order]:
        order.append(min(left, key=lambda name: _taken(wanted[name], before, name, left)))
    return order


def _taken(wanted: Schemata, before: Mapping[str, Schemata], name: str, left: Collection[str]) -> int:
    """How many ways somebody gets that others, who are still to be written, have."""
    return sum(
        (mask & ~before[name].get(line, {}).get(domain, 0) & before[other].get(line, {}).get(domain, 0)).bit_count()
        for line in MASKS
        for domain, mask in wanted.get(line, {}).items()
        for other in left
        if other != name
    )


def rounded(bandwidth: int, cache: Cache) -> int:
    """Round a throttle up to the machine's next step, as the kernel does."""
    return bandwidth if cache.bandwidth is None else cache.bandwidth.rounded(bandwidth)


def held_words(difference: HeldOtherwise) -> str:
    """Return, as a sentence, what the processor holds instead of what it was given."""
    line, domain = difference.line, difference.domain
    asked, held = (_setting(line, domain, value) for value in (difference.asked, difference.held))
    return f"{name_of(difference.member)} was given {asked}, and the processor makes {held} of it"


def loses_ways(before: Schemata, after: Schemata) -> bool:
    """Check whether some way is taken away."""
    return any(
        mask & ~after.get(resource, {}).get(domain, mask)
        for resource in MASKS
        for domain, mask in before.get(resource, {}).items()
    )


def name_of(member: str) -> str:
    """Name a member, or the default group, in a sentence."""
    return "the rest of the machine" if member == REST else member


def _setting(resource: str, domain: int, value: int | None) -> str:
    return one_line({resource: {domain: value}}) if value is not None else f"{resource}:{domain}=nothing"
