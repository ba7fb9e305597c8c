"""Rule write_report: a study's results and figures -> one self-contained HTML page, and the answer for a terminal."""

import argparse
from pathlib import Path

import castmates.pipeline.script
from castmates.files import replace_text
from castmates.report.answer.answer import answer
from castmates.report.answer.lines import answer_lines
from castmates.report.export.graph_files import write_graphs
from castmates.report.page.page import write_page
from castmates.report.results import read_results
from castmates.results.folder import StudyFolder


def main() -> None:
    """Read the arguments and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True, type=Path, help="results/STUDY, its figures drawn")
    parser.add_argument("--study", type=Path, help="the study's YAML file: gives title, question, margin and seed")
    parser.add_argument("--output", required=True, type=Path, help="the page to write")
    arguments = parser.parse_args()
    folder, results = StudyFolder(arguments.results), read_results(arguments.results, arguments.study)
    found = answer(results)
    replace_text(folder.answer_file, "".join(f"{line}\n" for line in answer_lines(found)))
    write_graphs(results, folder)
    write_page(results, folder.figures, arguments.output, found)


castmates.pipeline.script.run(main)
