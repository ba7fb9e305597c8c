"""Everything that root gives or takes back in one go."""

from castmates.errors import CastmatesError
from castmates.grant import group_rights, perf
from castmates.grant.perf import LASTS, Granting, find_grantee, granted, lines_of, must_be_root, record, take_back
from castmates.machine.lock import repair_lock
from castmates.protocols import Say
from castmates.runner.cleanup.restore import heal

NOTHING = "nothing is granted"


def give(
    user: str | None, groups: int, default_group: bool, shell: int | None, say: Say, everything_traced: bool = False
) -> None:
    """Give a user what sweeps need, showing each step; what is refused is an error at the end."""
    must_be_root("doctor --grant")
    grantee = find_grantee(user)
    granting = Granting(grantee, record(), say)
    shell = shell or (None if group_rights.has_scopes(grantee) else group_rights.calling_shell(grantee))
    with repair_lock("castmates doctor --grant", say):
        _forget_what_a_restart_undid()
        say(f"cache partitions (resctrl), for {grantee.name}:")
        group_rights.give_groups(granting, groups, default_group)
        say(f"control groups, for {grantee.name}:")
        group_rights.give_control_groups(granting, shell)
        say("perf events, for everybody:")
        perf.give_counting(granting)
        say(f"traces, for {grantee.name}:")
        perf.give_tracing(granting, everything_traced)
    if granted():
        say(LASTS)
    if lacking := group_rights.not_given(grantee):
        say(lacking)
    if granting.refused:
        raise CastmatesError("; ".join(granting.refused))


def undo(say: Say) -> None:
    """Take back everything that was granted."""
    must_be_root("doctor --undo")
    with repair_lock("castmates doctor --undo", say):
        # First, because members of a killed run that are frozen in the user's control group would thaw when it goes.
        for line in heal().sentences:
            say(line)
        undone = take_back()
    for entry in undone:
        say(str(entry))
    if not undone:
        say(NOTHING)
    if failed := [str(entry) for entry in undone if entry.how == "failed"]:
        raise CastmatesError("; ".join(failed))


def show(say: Say) -> None:
    """Describe what is granted now."""
    for line in lines_of(granted()) or [NOTHING]:
        say(line)


def _forget_what_a_restart_undid() -> None:
    record().restore(lambda entry: entry.stale)
