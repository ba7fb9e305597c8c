"""What every script in scripts/ shares: an error is a sentence, and Ctrl-C never shows a traceback.

Scripts import this module before all others of ours, for some of those take a second.
"""

import signal
import sys
from collections.abc import Callable

from castmates.errors import CastmatesError

# Until somebody has something to clean up (the runner then sets handlers of its own), Ctrl-C may simply end us.
signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(main: Callable[[], None]) -> None:
    """Call `main`; a CastmatesError ends it with its sentence."""
    try:
        main()
    except CastmatesError as problem:
        sys.exit(f"castmates: {problem}")
