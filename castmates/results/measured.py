"""The blocks that are measured, as their records describe them."""

from collections.abc import Iterator

from castmates.results.bundled_records import RecordReader
from castmates.results.columns.block import RECORD
from castmates.results.folder import StudyFolder
from castmates.results.records import no_record
from castmates.results.torn import is_whole
from castmates.study.plan_text import Common
from castmates.study.spec import PROTOCOL, Block


def measured_blocks(folder: StudyFolder) -> Iterator[Block]:
    """The blocks whose outputs are there, whole; failed ones too, those of another protocol not.

    A record without its tables counts for nothing: the block would be launched again, with the commands of the record.
    """
    common, records = Common(), RecordReader(folder)
    for path in folder.measured_paths():
        place = folder.block(path)
        if not is_whole(place):
            continue
        file = place / RECORD
        spec = records.read(file).get("spec", {})
        if spec.get("company", {}).get("protocol", PROTOCOL) != PROTOCOL:
            continue
        try:
            yield common.block_of(spec)
        except (ValueError, KeyError) as problem:
            raise no_record(file, problem) from None
