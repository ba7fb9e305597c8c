"""Schemata as the kernel writes and takes them, one line for each resource: `L3:0=7ff;1=7ff`, `MB:0=100;1= 50`."""

from castmates.errors import CastmatesError
from castmates.machine.resctrl_state import as_lines, settings

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
