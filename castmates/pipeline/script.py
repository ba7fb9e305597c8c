"""What every script in scripts/ shares: an error is a sentence, and Ctrl-C never shows a traceback.

Scripts import this module before all others of ours, for some of those take a second.
"""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from castmates.errors import CastmatesError

# Until somebody has something to clean up (the runner then sets handlers of its own), Ctrl-C may simply end us.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(main: Callable[[], None]) -> None:
    """Call `main`; a CastmatesError ends it with its sentence."""
    try:
        main()
    except CastmatesError as problem:
        sys.exit(f"castmates: {problem}")


def leave() -> NoReturn:
    """End well and at once: Python would first take all modules apart, for a tenth of a second after every launch."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # whoever listened may be gone
            stream.flush()
    os._exit(0)
