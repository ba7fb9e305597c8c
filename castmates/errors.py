"""The one exception that a user may see: a sentence, never a traceback."""


class CastmatesError(Exception):
    """Something the user can put right.

    The message is one clear sentence that names the file, line or key, states what was expected and what to do.
    """
