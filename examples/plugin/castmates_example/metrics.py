"""A metric of all members of a mix: the rate that the member which loses most keeps of its own alone."""

import numpy as np
import numpy.typing as npt


def least_progress(slowdowns: npt.NDArray[np.float64]) -> float:
    """From the slowdowns of the members in one launch; above zero, because means over launches are geometric."""
    return float(1 / slowdowns.max())
