"""A long test that passed is not run again until one of its sources changes."""

from tests.house import ROOT
from tests.plugins import unchanged


def test_the_sources_are_what_is_imported_also_by_name():
    sources = unchanged.sources_of(ROOT / "tests" / "unit" / "test_dataflow.py")
    assert ROOT / "castmates/analysis/dataflow/effects.py" in sources
    assert ROOT / "castmates/analysis/tables/thread_pools.py" in sources  # which estimates.py imports by its name


def test_another_source_is_another_digest(tmp_path, monkeypatch):
    test, module, other = (tmp_path / name for name in ("tests/test_one.py", "castmates/one.py", "castmates/two.py"))
    for file, text in ((test, "from castmates import one"), (module, "A = 1"), (other, "B = 1")):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    monkeypatch.setattr(unchanged, "SHARED", [])

    def digest():
        for cached in (unchanged.digest_of, unchanged._imported_by, unchanged._contents):
            cached.cache_clear()
        return unchanged.digest_of(test)

    def run():
        unchanged.digest_of_workloads.cache_clear()
        return unchanged.digest_of_workloads()

    (job := tmp_path / "castmates/workloads/job.py").parent.mkdir()
    assert run() == run()
    before = run()
    job.write_text("STEPS = 1")
    assert run() != before, "though no test imports it"
    first = digest()
    other.write_text("B = 2")
    assert digest() == first
    module.write_text("A = 2")
    assert digest() != first
