"""The nodes of windows that were measured before windows had any."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def with_hosts(windows: "pd.DataFrame", host_of: Callable[[str, int], str]) -> "pd.DataFrame":
    """The windows with their nodes, where blocks lack them that were measured before windows had any.

    The record of a block (`host_of`) has always had its host. The processor is that of the host's other windows.
    """
    import pandas as pd

    lacking = (windows["host"] == "") & (windows["platform"] != "modelled")
    if not lacking.any():
        return windows
    places = pd.MultiIndex.from_frame(windows.loc[lacking, ["company", "block"]].astype({"company": object}))
    hosts = {place: host_of(str(place[0]), int(place[1])) for place in places.unique()}
    host, processor = windows["host"].astype(object), windows["processor"].astype(object)
    host[lacking] = [hosts[place] for place in places]
    known = dict(zip(host[processor != ""], processor[processor != ""], strict=True))
    processor = processor.where(processor != "", host.map(lambda name: known.get(name, "")))
    return windows.assign(host=host.astype("str"), processor=processor.astype("str"))
