"""What every script in scripts/ shares: an error is a sentence, and Ctrl-C never shows a traceback.

Scripts import this module before our others, because some of those take a second.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from castmates.errors import CastmatesError

# Until there is something to clean up (the runner then sets its own handlers), Ctrl-C may simply end us.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(main: Callable[[], None]) -> None:
    """Call `main`; a CastmatesError ends it with its sentence."""
    try:
        main()
    except CastmatesError as problem:
        sys.exit(f"castmates: {problem}")


def leave() -> NoReturn:
    """End well and at once: Python would first take all modules apart, a tenth of a second after every launch."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the listener may be gone
            stream.flush()
    os._exit(0)
