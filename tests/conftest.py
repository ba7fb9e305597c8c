"""What all tests share."""

import signal
from contextlib import suppress

with suppress(ImportError):  # a guest that runs some of the tests may lack it
    from hypothesis import settings

    settings.register_profile("all", deadline=None)  # no assertion on times: the machines are shared
    settings.load_profile("all")


def pytest_configure():
    """A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP; tests must not inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
