"""The studies that confirm partitions of a study, and their launches: light, as the Snakefile asks at each start."""

from pathlib import Path

from castmates.results.columns.launch import RECORD, table_file
from castmates.results.folder import StudyFolder


def study_files(folder: StudyFolder) -> list[Path]:
    """The study files that confirm partitions of these results."""
    anybody = folder.confirming_file("*")
    return sorted(anybody.parent.glob(anybody.name))


def folder_of(file: Path, folder: StudyFolder) -> StudyFolder:
    """Where the results of a confirming study lie: beside those that it confirms."""
    return StudyFolder(folder.path.parent / file.stem)


def launch_files(folder: StudyFolder) -> list[str]:
    """The files of the confirming studies' measured launches that the tables are made of."""
    records = [record for file in study_files(folder) for record in folder_of(file, folder).record_files()]
    return [str(record.with_name(name)) for record in records for name in (RECORD, table_file("windows"))]
