"""What the processor makes of the values that the kernel gives it: seen in its registers and its caches only.

The kernel's schemata go on showing what was written. Each resource has registers of its own, one for each class.
"""

import errno
from collections.abc import Iterator

from castmates.rdt.fake.controls import Controls
from castmates.rdt.fake.shape import Shape, Throttle
from castmates.rdt.fake.texts import refusal

# First registers. Intel's throttles are shares that are withheld; AMD's are limits.
MASKS_FROM, SECOND_MASKS_FROM = 0xC90, 0xD10
DELAYS_FROM, LIMITS_FROM, SLOW_LIMITS_FROM = 0xD50, 0xC000_0200, 0xC000_0280


def held_mask(shape: Shape, mask: int) -> int:
    """Return the ways that a mask gives: of those that are tied all or none."""
    return mask | shape.tied if mask & shape.tied else mask


def held_throttle(shape: Shape, value: int) -> int:
    """Return the throttle that holds."""
    return value if shape.throttle is None else shape.throttle.becomes.get(value, value)


def register(shape: Shape, controls: Controls | None, cpu: int, number: int) -> int:
    """Return what a register of a CPU holds; of one that there is not the processor refuses to speak."""
    if shape.is_arm:
        raise refusal(errno.ENOENT)  # Linux has no /dev/cpu there
    for resource, first, count in _kinds(shape):
        if 0 <= (place := number - first) < count:
            return _held(shape, controls, cpu, resource, place)
    raise refusal(errno.EIO)


def _kinds(shape: Shape) -> Iterator[tuple[str, int, int]]:
    """Yield the resources with their first register, and how many they have."""
    for resource, first, ways in (("L3", MASKS_FROM, shape.last), ("L2", SECOND_MASKS_FROM, shape.second)):
        if ways:
            yield resource, first, ways.closids
    for resource, limits, throttle in (("MB", LIMITS_FROM, shape.throttle), ("SMBA", SLOW_LIMITS_FROM, shape.slow)):
        if throttle:
            yield resource, DELAYS_FROM if throttle.linear else limits, throttle.closids


def _held(shape: Shape, controls: Controls | None, cpu: int, resource: str, place: int) -> int:
    if ways := {"L3": shape.last, "L2": shape.second}.get(resource):
        domain = next((number for number, cpus in ways.caches.items() if cpu in cpus), None)
        mask = _written(controls, resource, domain, place, ways.full)
        return held_mask(shape, mask) if resource == "L3" else mask
    throttle = (shape.throttle if resource == "MB" else shape.slow) or Throttle()
    domain = next(number for number, cpus in shape.domains.items() if cpu in cpus)
    known = None if resource == "MB" and controls is not None and controls.mbps else controls
    value = throttle.becomes.get(asked := _written(known, resource, domain, place, throttle.most), asked)
    return 100 - value if throttle.linear else value


def _written(controls: Controls | None, resource: str, domain: int | None, place: int, otherwise: int) -> int:
    """Return what the kernel wrote into one of these registers; with CDP each class has two, data's and code's."""
    schemas = [] if controls is None else [each for each in controls.schemas if each.resource == resource]
    if not schemas:
        return otherwise
    if domain is None:  # this CPU has no such cache
        raise refusal(errno.EIO)
    return schemas[place % len(schemas)].values[domain][place // len(schemas)]
