"""Whether this machine can give out CPU time in shares."""

from castmates.linux import cpu_quota


def no_quota() -> str:
    """Why it cannot, in a clause; "" where it can."""
    return cpu_quota.lacking()
