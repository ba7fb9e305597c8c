"""The arrows of docs/architecture.md: who may use whom, no circles, few flat modules, and a picture that is true."""

import ast

import pytest

from tests import house

COLUMNS = "results/columns"
REPORT = {"report", "report/text", "analysis", "results", "timeline", COLUMNS, "study"}
FIGURES = REPORT | {"report/figures"}
ALLOWED = {  # and what BASE of tests/house.py names; `cli` may use every room
    "study": set(),
    COLUMNS: {"study"},
    "linux": {"study"},
    "inside": {"linux"},  # its table of events alone: see below
    "workloads": {"inside", "linux", "study"},
    "machine": {"linux", "study"},
    "counters": {"linux", "study"},
    "traces": {"analysis", "workloads"},
    "timeline": {"traces", "workloads", "results", "analysis", COLUMNS, "study"},
    "rdt": {"linux", "machine", "study"},
    "analysis": {COLUMNS, "study"},
    "results": {COLUMNS, "study"},
    "runner": {"timeline", "traces", "workloads", "inside", "rdt", "counters", "machine", "analysis", "linux"}
    | {COLUMNS, "study"},
    "trials": {"project", "runner", "workloads", "inside", "rdt", "counters", "machine", "analysis", "results"}
    | {"linux", "study"},
    "grant": {"runner", "machine", "linux"},
    "project": {"rdt", "workloads", "machine", "results", "study"},
    "pipeline": {"project", "runner", "timeline", "analysis", "results", COLUMNS}
    | {"workloads", "linux", "machine", "study"}
    | {"report", *(f"report/{part}" for part in ("answer", "export", "figures", "page"))},
    "hardware_day": {"trials", "pipeline", "runner", "rdt", "machine", "linux", "results", "study"}
    | {"report", "report/text", "report/page"},
    "terminal": {"pipeline", "project", "runner", "analysis", "results", "workloads", "machine", "study"},
    "report": {"results", "timeline", COLUMNS, "analysis", "study"},
    "report/text": {"report", "timeline", "analysis", "results", COLUMNS, "study"},
    "report/figures": REPORT,
    "report/answer": REPORT,
    "report/page": FIGURES | {"report/answer"},
    "report/paper": FIGURES | {"project", "report/page"},
    "report/comparison": FIGURES | {"report/page"},
    "report/grouping": FIGURES | {"report/page"},
    "report/export": {"report", "report/text", "analysis", "results", "study"},
}
PURE = {"study", "analysis"}
NOT_PURE = {"os", "pathlib", "subprocess", "shutil", "socket", "tempfile", "io", "glob", "psutil"}
FLAT = {"english", "errors", "extras", "files", "protocols", "sampler", "parallel", "project", "plugins", "shipped"}
FLAT |= {"__init__", "__main__"}
ELSEWHERE = {  # what other interpreters import: the standard library, and these
    "": ["heartbeat", "phases", "phase_writer", "phase_file", "phase_names", "request_file"],
    "attached.": ["follow"],
    "jaxjobs.": ["__main__", "job", "models"],
    "jobs.": ["asked", "data", "loop", "serving"],
    "llamajobs.": ["__main__", "job", "weights"],
    "stressng.": ["__main__"],
    "tfmodels.": ["__main__", "marks", "graph_ranges"],
    "torchjobs.": ["__main__", "job", "models"],
}


def test_every_room_is_known():
    assert house.arrows().keys() - {"cli"} == ALLOWED.keys()


@pytest.mark.parametrize("room", ALLOWED)
def test_imports_follow_the_arrows(room):
    assert house.arrows()[room] <= ALLOWED[room]


def test_no_modules_import_each_other_in_a_circle():
    assert house.circles() == []


def test_only_these_modules_lie_flat():
    assert {file.stem for file in house.PACKAGE.glob("*.py")} == FLAT


@pytest.mark.parametrize("room", sorted(PURE))
def test_pure_rooms_touch_neither_files_nor_hardware(room):
    for file in (house.PACKAGE / room).rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module)
        assert not {name.split(".")[0] for name in names} & NOT_PURE, file


@pytest.mark.parametrize("module", [folder + name for folder, names in ELSEWHERE.items() for name in names])
def test_what_other_interpreters_import_needs_nothing_of_ours(module):
    for name in house.imports()[f"castmates.workloads.{module}"]:
        assert name.startswith("castmates.workloads"), name


def test_a_process_that_counts_itself_needs_the_standard_library_alone():
    allowed = {"castmates.inside", "castmates.linux.perf_event", "castmates.linux.event_names", "castmates.errors"}
    for module, names in house.imports().items():
        if module in allowed or module.startswith("castmates.inside."):
            assert {name for name in names if not name.startswith("castmates.inside.")} <= allowed, module


def test_modules_stay_small():
    assert not [file for file in house.PACKAGE.rglob("*.py") if len(file.read_text().splitlines()) >= 400]


def test_the_picture_in_the_documentation_is_true():
    page = house.PAGE.read_text(encoding="utf-8")
    assert house.page_with(house.picture()) == page, "`python -m tests.house` draws it anew"


def test_the_search_sees_imports_in_functions_and_circles(tmp_path, monkeypatch):
    for name, text in {
        "a/x": "def f():\n    from castmates.b import y",
        "b/y": "import castmates.a.x",
        "b/__init__": "",
    }.items():
        file = tmp_path / "castmates" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "PACKAGE", tmp_path / "castmates")
    for cached in (house.modules, house.imports, house.arrows):
        cached.cache_clear()
    try:
        assert house.circles() == [["castmates.a.x", "castmates.b.y"]]
        assert house.arrows() == {"a": {"b"}, "b": {"a"}}
    finally:
        for cached in (house.modules, house.imports, house.arrows):
            cached.cache_clear()
