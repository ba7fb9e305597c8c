"""What all tests share."""

import signal


def pytest_configure():
    """A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP; tests must not inherit it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
