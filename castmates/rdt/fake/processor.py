"""What the processor makes of the values that the kernel gives it: seen in its registers and its caches only.

The kernel's schemata go on showing what was written.
"""

import errno

from castmates.rdt.fake.controls import Controls, Schema
from castmates.rdt.fake.shape import Shape
from castmates.rdt.fake.texts import refusal

MASKS_FROM, DELAYS_FROM, LIMITS_FROM = 0xC90, 0xD50, 0xC000_0200


def held_mask(shape: Shape, mask: int) -> int:
    """Return the ways that a mask gives: of those that are tied all or none."""
    return mask | shape.tied if mask & shape.tied else mask


def held_throttle(shape: Shape, value: int) -> int:
    """Return the throttle that holds."""
    return value if shape.throttle is None else shape.throttle.becomes.get(value, value)


def register(shape: Shape, controls: Controls | None, domain: int, number: int) -> int:
    """Return what a register of a domain holds; of one that there is not the processor refuses to speak."""
    delays = shape.throttle is not None and shape.throttle.linear
    for first, masks in ((MASKS_FROM, True), (DELAYS_FROM if delays else LIMITS_FROM, False)):
        count = shape.closids if masks else shape.throttle.closids if shape.throttle else 0
        if (not masks or shape.ways) and 0 <= (place := number - first) < count:
            value = _value(shape, controls, domain, place, masks)
            if masks:
                return held_mask(shape, value)
            held = held_throttle(shape, value)
            return 100 - held if delays else held
    raise refusal(errno.EIO)


def _value(shape: Shape, controls: Controls | None, domain: int, place: int, masks: bool) -> int:
    """Return what the kernel wrote into one of these registers; with CDP each class has two, data's and code's."""
    schemas = [] if controls is None else [each for each in controls.schemas if each.masks == masks]
    if not schemas or (not masks and controls is not None and controls.mbps):
        return shape.full if masks else shape.throttle.most if shape.throttle else 0
    chosen: Schema = schemas[place % len(schemas)]
    return chosen.values[domain][place // len(schemas)]
