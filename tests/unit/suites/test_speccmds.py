"""SPEC's command files are read as its own specinvoke reads them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castmates.workloads.suites.spec2017 import NotUnderstood, from_dry_run, parse

WRITTEN = (Path(__file__).parents[2] / "data/suites/speccmds.cmd").read_text()


def test_a_command_file_says_environment_folder_and_commands():
    found = parse(WRITTEN)
    assert found.environment == {"LD_LIBRARY_PATH": "/usr/lib64:/lib64", "NOTE": "two words", "EMPTY": ""}
    assert found.folder == "/spec/run_base_test_mine.0000"
    first, second = found.commands
    assert first.line == "../run_base_test_mine.0000/prog_base.mine in.0 --flag -o x > a.out 2>> a.err"
    assert (first.output, first.errors, first.may_fail) == ("a.out", "a.err", False)
    assert (second.output, second.may_fail) == ("b.cmp", True)


@pytest.mark.parametrize(("how", "words"), [("C", "0<&-"), ("N", "< /dev/null"), ("z", "< /dev/null")])
def test_without_r_redirections_are_added(how, words):
    found = parse(f"-N {how}\n-o a.out -e a.err prog x\n-i in -o b.out prog y\n")
    assert [one.line for one in found.commands] == [f"prog x {words} > a.out 2>> a.err", "prog y < in > b.out"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("-r\n-C /x\n", "no command"),
        ("-r\n-x prog\n", "line 2: '-x' is no option"),
        ("-o out\n", "line 1: there is no"),
    ],
)
def test_what_specinvoke_would_refuse_is_told(text, said):
    with pytest.raises(NotUnderstood, match=said):
        parse(text)


WORD = st.text(st.characters(codec="ascii", categories=("L", "N"), include_characters="./_="), min_size=1, max_size=8)


@given(st.lists(st.tuples(WORD, WORD, st.lists(WORD, max_size=4)), min_size=1, max_size=5), st.booleans())
def test_every_command_that_is_written_is_found_in_order(commands, plain):
    head = "-r\n" if plain else ""
    lines = [f"-o {out} {' '.join([prog, *rest])}" for out, prog, rest in commands]
    found = parse(head + "\n".join(lines) + "\n").commands
    assert [one.output for one in found] == [out for out, *_ in commands]
    for one, (out, prog, rest) in zip(found, commands, strict=True):
        assert one.line == " ".join([prog, *rest]) + ("" if plain else f" 0<&- > {out}")


def test_what_specinvoke_prints_on_a_dry_run_is_read():
    printed = (
        "# specinvoke r4356\n#  Invoked as: specinvoke -n\n# Use another -n on the command line\n"
        "# Starting run for copy #0\n../x/prog_base.mine a > a.out 2>> a.err\n"
        "# Starting run for copy #1\n../x/prog_base.mine a > a.out 2>> a.err\n"
        "# Starting run for copy #0\n../x/prog_base.mine b > b.out\nspecinvoke exit: rc=0\n"
    )
    assert from_dry_run(printed) == ["../x/prog_base.mine a > a.out 2>> a.err", "../x/prog_base.mine b > b.out"]
    assert from_dry_run("# Starting run for copy #0\ncp /dev/null spec_empty_file.0.1000\nprog\n") == []
