"""Gives a user groups of resctrl, to write their masks and to move the user's own processes there, and nothing else.

The kernel lets users move tasks that they own (the effective user, rdtgroup_task_write_permission), and write
what the file's permissions allow. Making and removing groups stays root's: the root folder would give everybody's. So
do the files `cpus` and `cpus_list`: they take CPUs from all other groups, and with them all that is in the default one.
"""

import errno
from pathlib import Path

from castmates.grant.perf import Grantee, Granting, Step, granted
from castmates.linux import cgroups
from castmates.linux.kernel_files import below
from castmates.linux.owner import delegated_group_name
from castmates.machine.facts import resctrl as resctrl_facts
from castmates.machine.journal import Change
from castmates.machine.resctrl_state import ANYTHING, POINT, read_schemata

FILES = ("tasks", "schemata")
ENOUGH = 6  # a lead, antagonists, and one with everything; fewer where the processor has fewer classes


def give_groups(granting: Granting, groups: int, default_group: bool, root: Path = Path("/")) -> None:
    """Mount resctrl unless it is, make the groups, and hand their files over."""
    facts = resctrl_facts(root)
    if not facts["kernel"]:
        granting.leave("nothing to give: the kernel has no resctrl for this processor, so there are no partitions")
        return
    here = below(root, facts["mounted"] or str(POINT))
    if facts["mounted"] is None and not _mount(granting, here):
        return
    for number in range(groups):
        if not _group(granting, here / delegated_group_name(granting.grantee.uid, number), number):
            break
    if default_group:
        _hand_over_default(granting, here / "schemata")


def not_given(grantee: Grantee, root: Path = Path("/")) -> str:
    """Describe what partitions lack as long as the default group's masks are root's, or ""."""
    mounted = resctrl_facts(root)["mounted"]
    if mounted is None or (below(root, mounted) / "schemata").stat().st_uid == grantee.uid:
        return ""
    return (
        "Partitions will not limit the rest of the machine, whose masks stay root's: it keeps all ways, and may fill"
        " those of a program. `sudo castmates doctor --grant --default-group` hands its masks over too."
    )


def _mount(granting: Granting, here: Path) -> bool:
    advice = "in a container mount it on the host, and start the container with -v /sys/fs/resctrl:/sys/fs/resctrl"
    return granting.give(Step("resctrl is mounted", "resctrl-mount", here, "mounted", f"umount {here}"), advice)


def _group(granting: Granting, group: Path, made: int) -> bool:
    """Make one group and hand its files over; False where the processor has no class for it."""
    what = f"a group of {granting.grantee.name}'s with its own masks"
    error = granting.attempt(Step(what, "group", group, cgroups.THERE, f"rmdir {group}"))
    if error is not None and error.errno == errno.ENOSPC and made:
        granting.leave(f"no more than {made} groups: the processor has no class for another one")
    elif error is not None:
        advice = "remove groups that are not used (castmates doctor names them)" if error.errno == errno.ENOSPC else ""
        granting.refuse(f"{what}: {group}: {error.strerror}", advice)
    if error is not None:
        return False
    return all(_hand_over(granting, group / name, name) for name in FILES)


def _hand_over_default(granting: Granting, file: Path) -> None:
    """Note the masks before the user can write them: the user's own journal cannot be read later."""
    noted = any((entry.change.kind, entry.change.target) == ("resctrl-schemata", str(file)) for entry in granted())
    what = "the masks of all processes that are in no group"
    try:
        masks = read_schemata(file)
    except OSError as error:
        granting.refuse(f"{what}: {file}: {error.strerror}")
        return
    if not noted:
        change = Change("default group's masks", "resctrl-schemata", str(file), masks, ANYTHING)
        granting.journal.announce([change], f"{granting.grantee.name}'s sweeps")
    _hand_over(granting, file, what)


def _hand_over(granting: Granting, file: Path, what: str) -> bool:
    if not file.exists():
        return True
    words = f"{what}: belongs to {granting.grantee.name}"
    return granting.give(Step(words, "owner", file, granting.grantee.owner, f"chown root:root {file}"))
