"""Files of BenchCast -> a study and its catalogue, and a sentence for all that could not be taken over."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from castmates.english import counted
from castmates.errors import CastmatesError
from castmates.files import replace_text
from castmates.pipeline.benchcast_files import CONFIGURATION, SUITES, Found, Program, read_file, take_recorded
from castmates.pipeline.own_study import in_a_line, scalar
from castmates.results.named import OWN_STUDY
from castmates.study.model import Catalogue, Study
from castmates.study.reading import read_keys

CATALOGUE = Path("workloads") / "benchcast.yaml"  # beside the study
EVENTS = "benchcast"  # the set of events
MIXES_OF_A_LIST = 12  # where no command says how many
ELSEWHERE = {"SPEC": "../SPEC17", "NPB": "../NPB", "PARSEC": "../parsec-3.0"}  # where BenchCast looks for them itself
NPB_SERIAL, PARSEC_SERIAL = "NPB3.3-SER", "amd64-linux.gcc-serial"  # the builds that it starts


def write_study(folder: Path, files: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Write study and catalogue into a folder; the files written, and a sentence for all that was not taken over."""
    found = Found()
    for file in files:
        read_file(file, found)
    take_recorded(found)
    study, catalogue = folder / OWN_STUDY, folder / CATALOGUE
    for file in (study, catalogue):
        if file.exists():
            raise CastmatesError(f"{file} is there already, and stays as it is; give another folder.")
    if not found.mixes and len(_pool(found)) < 2:
        raise CastmatesError(
            f"{', '.join(map(str, files))}: there is no mix in it; give a script with commands of bench_cast, "
            f"experiment_list.py, or a table of results as well.{''.join(f' {one}' for one in found.left)}"
        )
    for name, why in found.wanted.items():
        if name not in {file.name for file in files}:
            found.leave(name, why)
    if found.draws and not found.pool:
        found.leave("topdown.py", "it draws from experiment_list.py; give that with --from as well")
    texts = {catalogue: _catalogue_text(found), study: ""}
    texts[study] = _study_text(found, files)
    read_keys(Catalogue, texts[catalogue], str(catalogue))
    read_keys(Study, texts[study], str(study))  # what nobody can read is not written
    for file, text in texts.items():
        replace_text(file, text)
    return [study, catalogue], list(found.left)


def _catalogue_text(found: Found) -> str:
    """The suites, each with the benchmarks that are named, patched."""
    programs = list(dict.fromkeys([*found.pool, *(program for mix in found.mixes for program in mix)]))
    lines = [
        "# Written by `castmates init --from`: suites that were patched for BenchCast, whose iterations are steps",
        "# (castmates help benchcast, castmates help suites).",
    ]
    for suite in SUITES:
        own = [program for program in programs if program.suite == suite]
        if own:
            keys = {"SPEC": _spec, "NPB": _npb, "PARSEC": _parsec}[suite](own, found)
            benchmarks = in_a_line(list(dict.fromkeys(program.benchmark for program in own)))
            lines += [f"{own[0].workload.partition('.')[0]}:", f"  root: {scalar(str(_root(suite, found)))}"]
            lines += [*(f"  {key}: {scalar(value)}" for key, value in keys.items()), f"  benchmarks: {benchmarks}"]
            lines += ["  progress: barriers"]
    return "\n".join(lines) + "\n"


def _root(suite: str, found: Found) -> Path:
    if suite not in found.roots:
        what = f"the folder of {suite} in {CATALOGUE}"
        found.leave(what, f"no {CONFIGURATION} names it, so it is a guess ({ELSEWHERE[suite]}); correct it")
        found.roots[suite] = Path(ELSEWHERE[suite])
    return found.roots[suite] / NPB_SERIAL if suite == "NPB" else found.roots[suite]


def _spec(programs: Sequence[Program], found: Found) -> dict[str, str]:
    several = sorted({f"{one.name}.{one.input}" for one in programs if one.input != "1"})
    if several:
        why = "a run here is all commands of the benchmark's speccmds.cmd in order, and not one input of it"
        found.leave(", ".join(several), why)
    return {"size": "refrate"} | ({"label": found.label} if found.label else {})


def _npb(programs: Sequence[Program], found: Found) -> dict[str, str]:
    classes = Counter(program.input for program in programs)
    size = classes.most_common(1)[0][0]
    for other in sorted(set(classes) - {size}):
        names = ", ".join(sorted({one.name for one in programs if one.input == other}))
        found.leave(f"class {other} of {names}", f"a catalogue file has one class of NPB, which is {size} here")
    return {"size": size}


def _parsec(programs: Sequence[Program], found: Found) -> dict[str, str]:
    names = ", ".join(sorted({program.name for program in programs}))
    found.leave(f"BenchCast's own arguments of {names}", "PARSEC's input 'native' is taken, as parsecmgmt starts it")
    return {"size": "native", "build": PARSEC_SERIAL}


def _study_text(found: Found, files: Sequence[Path]) -> str:
    mixes = _mixes(found)
    lines = [
        f"# Written by `castmates init --from` of {', '.join(file.name for file in files)}; change it as you like.",
        *(["# What was not taken over:"] if found.left else []),
        *(f"# - {sentence}" for sentence in found.left),
        "name: benchcast",
        "title: Mixes of BenchCast",
        "",
        *mixes,
        "",
        "budget:",
        "  launches: 6",
        "  rounds: 3",
    ]
    if found.reserve:
        lines += ["", f"placement: {{reserve: {found.reserve}}} # cores without members"]
    if found.events:
        lines += [
            "",
            "counters:",
            f"  events: [basic, {EVENTS}]",
            "  sets:",
            f"    {EVENTS}: {in_a_line(found.events)}",
        ]
    return "\n".join([*lines, "", "seed: 1"]) + "\n"


def _mixes(found: Found) -> list[str]:
    """The key `mixes`: the first program of a mix leads."""
    names = [[program.workload for program in mix] for mix in found.mixes]
    written = list(dict.fromkeys(f"- {{lead: {lead}, antagonists: {in_a_line(others)}}}" for lead, *others in names))
    if len(_pool(found)) < 2:
        if found.pool:
            found.leave("experiment_list.py", "it has one program that is known here, and a mix needs two")
        return [
            "mixes: # the first program leads; the work of each member is measured",
            *(f"  {one}" for one in written),
        ]
    listed = [f"    {one}" for one in written]
    return ["mixes:", *_random(found), *(["  list: # the first program leads", *listed] if listed else [])]


def _pool(found: Found) -> list[str]:
    return list(dict.fromkeys(program.workload for program in found.pool))


def _random(found: Found) -> Iterator[str]:
    pool = _pool(found)
    processors = found.drawn.get("num_procs", 0)
    most = found.drawn.get("max_apps", 8)
    together = min(most, processors or most, len(pool))
    others = max(1, together - 1)
    copies = max(1, (processors - 1) // others)
    found.leave("topdown.py", "it draws a suite first and then its program; here each program comes equally often")
    if not processors:
        why = "topdown.py fills all processors of the machine there; set `copies`"
        found.leave("--num_procs is not given", why)
    elif 1 + others * copies != processors:
        why = f"a lead and {copies} of each of {counted(others, 'other')} are {1 + others * copies} members here"
        found.leave(f"{counted(processors, 'processor')} with {counted(together, 'program')}", why)
    yield "  random: # `castmates plan` shows how long it takes; the draw is balanced"
    yield f"    count: {found.drawn.get('numtests', MIXES_OF_A_LIST)}"
    yield f"    antagonists: {others}"
    if not processors:
        yield "    # copies: 1  # of each antagonist, so that a mix fills the machine"
    elif copies > 1:
        yield f"    copies: {copies}"
    yield f"    from: {in_a_line(pool)}"
