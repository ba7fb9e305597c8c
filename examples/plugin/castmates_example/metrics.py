"""A metric of all members of a mix: the share of its own rate that the member with the largest loss keeps."""

import numpy as np
import numpy.typing as npt


def least_progress(slowdowns: npt.NDArray[np.float64]) -> float:
    """From the slowdowns of the members in one launch; above zero, because means over launches are geometric."""
    return float(1 / slowdowns.max())
