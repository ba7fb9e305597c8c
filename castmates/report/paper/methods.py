"""The methods paragraph of a paper, from what the study recorded: what was not recorded is not claimed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from castmates.analysis.effects.verdicts import CONTROL_LEVEL, TOO_FEW, effect_level
from castmates.analysis.partitions.recommendation import ADVISED, LIMIT, WRONG
from castmates.analysis.partitions.sensitivity import INTERPOLATED
from castmates.report.results import Results
from castmates.report.text import latency, words
from castmates.report.text.machine import described
from castmates.report.text.stamps import origin, stamped
from castmates.report.text.words import between_with_others, counted, listed, percent_of
from castmates.study.capabilities import PLACEBO
from castmates.study.cpus import format_cpu_list
from castmates.study.mitigations import BETWEEN
from castmates.study.reasons import listed_in
from castmates.study.rounds import FIRST_LAUNCHES
from castmates.study.scenes import measures_alone
from castmates.study.schedule import launch_seed
from castmates.study.spec import UNMANAGED

Paragraph = tuple[str, str]  # a heading and its sentences
OF_LAUNCHES = {"castmates": "Castmates", "snakemake": "Snakemake", "python": "Python", "kernel": "Linux"}


def paragraphs(results: Results) -> list[Paragraph]:
    """Heading by heading, in the past tense."""
    parts = {
        "Origin": _origin(results),
        "Design": _design(results),
        "Members": _members(results),
        "Machine": _machine(results),
        "Isolation": _isolation(results),
        "Windows": _windows(results),
        "Statistics": _statistics(results),
        "Software": _software(results),
    }
    return [
        (heading, " ".join(kept))
        for heading, sentences in parts.items()
        if (kept := [sentence for sentence in sentences if sentence])
    ]


def as_markdown(parts: Sequence[Paragraph]) -> str:
    """A paragraph per heading."""
    return "".join(f"**{heading}.** {text}\n\n" for heading, text in parts)


def as_latex(parts: Sequence[Paragraph]) -> str:
    """The same for LaTeX."""
    return "".join(f"\\paragraph{{{escaped(heading)}.}} {escaped(text)}\n\n" for heading, text in parts)


def _origin(results: Results) -> Iterable[str]:
    if not results.platforms:
        yield f"The study {results.name} has no measured launch."
    elif not origin(results):
        yield f"The study {results.name} was measured on {_hosts(results)}."
    else:
        yield f"The study {results.name} is {origin(results)}. {words.platform_words(results.platforms)}"
        if results.platforms == ["modelled"]:
            yield "No program was started: a launch, a round and a window are those of the model."


def _hosts(results: Results) -> str:
    hosts = sorted({record.host for record in results.measured_records} - {""})
    return (
        f"the host {hosts[0]}"
        if len(hosts) == 1
        else f"the hosts {listed(hosts)}"
        if hosts
        else "a host without a name"
    )


def _design(results: Results) -> Iterable[str]:
    launches = results.measured_records
    designs = [record.design for record in launches]
    if not designs:
        return
    placebos = "the lead beside placebos, " if results.asks(PLACEBO) else ""
    scenes = f"the lead alone, {placebos}each co-run"
    scenes += ", each antagonist alone" if measures_alone(results.plan) else ""
    yield (
        f"Each of {counted(len(launches), 'launch')} started a lead and its antagonists once, and measured each scene "
        f"({scenes}) in rounds, each in fresh random order."
    )
    rounds, window, settle = (_values(designs, name) for name in ("rounds", "window", "settle"))
    yield f"Planned were {rounds} rounds a launch, windows of {window} s and a settle time of {settle} s before each."
    if any(design.get("decided") for design in designs):
        yield (
            f"The first {FIRST_LAUNCHES} launches of each cohort decided how many rounds the others had, by the "
            "variance between rounds and between launches and by what a round and the start of a launch took (after "
            "Kalibera and Jones, 2013)."
        )
    steps, longest = _values(designs, "steps"), _values(designs, "longest_window")
    if steps and longest:
        yield f"Where needed a window was stretched, to {longest} s at most, for {steps} steps of every active member."
    rounds_kept = [record.rounds for record in launches if record.rounds is not None]
    if len(rounds_kept) == len(launches):
        yield f"The launches hold {sum(rounds_kept)} rounds without a rejected window."
    if (seed := _seed(results)) is not None:
        yield f"All random orders derive from the seed {seed}."


def _seed(results: Results) -> int | None:
    """The study's seed, where the seeds that the launches recorded derive from it."""
    if results.study is None:
        return None
    seed, launches = results.study.seed, results.measured_records
    derived = [record.seed == launch_seed(seed, record.scenes, record.number) for record in launches]
    return seed if derived and all(derived) else None


def _members(results: Results) -> Iterable[str]:
    ours = {"lead": set(results.effects["lead"]), "antagonist": _antagonists(results)}
    named: dict[str, dict[str, None]] = {"lead": {}, "antagonist": {}}
    for record in results.measured_records:
        for member in record.members:
            cpus = format_cpu_list(member.cpus)
            where = f"{'CPU' if cpus.isdigit() else 'CPUs'} {cpus}" if cpus else ""
            only = "" if member.workload in ours.get(member.role, ()) else "in the controls only"
            facts = "; ".join(filter(None, [f"unit of progress: {member.unit}", where, only]))
            named.setdefault(member.role, {}).setdefault(f"{member.workload} ({facts})")
    for role, names in named.items():
        if names:
            yield (
                f"The {role}s were {listed(list(names))}." if len(names) > 1 else f"The {role} was {next(iter(names))}."
            )


def _antagonists(results: Results) -> set[str]:
    return {name for names in results.effects["antagonists"] for name in names.partition(BETWEEN)[0].split("+") if name}


def _machine(results: Results) -> Iterable[str]:
    facts = results.machine
    known = dict(described(facts))
    if not known:
        yield "Nothing was recorded of the machine."
        return
    terms = [term for term in known if term not in ("Host", "Read at")]
    yield "As recorded: " + "; ".join(f"{_lower(term)} {known[term]}" for term in terms) + "."
    siblings = facts.topology.siblings
    if siblings == ():
        yield "No CPU was reported to share its core with another one."
    elif siblings:
        yield f"CPUs reported to share a core: {'; '.join(siblings)}."
    lacking = ["the frequency governor"] if facts.recorded("governors") and facts.governors is None else []
    lacking += ["turbo"] if facts.recorded("turbo") and facts.turbo is None else []
    if lacking:
        yield f"Not readable there: {listed(lacking)}."


def _lower(term: str) -> str:
    return term if term[1:2].isupper() else term[:1].lower() + term[1:]


def _isolation(results: Results) -> Iterable[str]:
    launches = results.measured_records
    measured = results.platforms == ["measured"]
    if measured and any(record.pinned for record in launches):
        yield "Every program was bound to the CPUs named above."
    if measured and (freezers := _distinct(record.freezer for record in launches)):
        yield f"Members that took no part in a scene were frozen by {listed(freezers)}."
    allocators = _distinct(record.allocation for record in launches)
    partitions = [name for name in dict.fromkeys(results.effects["partition"]) if name != UNMANAGED]
    if partitions:
        by = f" by {listed(allocators)}" if allocators else ""
        yield f"The last-level cache was shared out{by} in {counted(len(partitions), 'partition')}."
        ways = _distinct(record.ways for record in launches)
        yield f"Its ways: {ways[0]}." if len(ways) == 1 else ""
        witnessed = _distinct(record.witnessed for record in launches)
        yield f"Masks were {witnessed[0]}." if len(witnessed) == 1 else ""
        yield results.masks[1] if results.masks else ""
    else:
        yield f"No cache partition was set ({'; '.join(allocators)})." if allocators else "No cache partition was set."
    prepared = _distinct(f"{knob} {value}" for record in launches for knob, value in record.prepared.items())
    yield f"Set for the launches and put back after them: {listed(prepared)}." if prepared else ""


def _windows(results: Results) -> Iterable[str]:
    yield words.rejection_sentence(results.launches, results.windows)
    lost = results.windows[~results.windows["valid"]].drop_duplicates(["cohort", "launch", "window"])
    reasons = Counter(kind for cell in lost["reason_kinds"] for kind in listed_in(cell))
    if len(reasons) > 3:
        yield "All reasons: " + ", ".join(f"{kind} ({count})" for kind, count in reasons.most_common()) + "."
    failed = int((results.launches["status"] == "failed").sum())
    yield f"{counted(failed, 'launch')} failed." if failed else ""


def _statistics(results: Results) -> Iterable[str]:
    yield (
        "Slowdown is the baseline's rate over the scene's, paired inside rounds, its logarithm averaged over the "
        "rounds of a launch; loss is one minus its inverse."
    )
    if results.effects["slowdown_low"].notna().any():
        yield f"Intervals are 95 % t intervals {between_with_others(results.effects)}."
    if results.adaptive_looks:
        guessed = int((results.curves["source"] == INTERPOLATED).sum())
        yield (
            f"{counted(len(results.adaptive_looks), 'look')} at the results decided which mixes and partitions further "
            "launches measured; each stopped a fixed number of launches after its question was answered."
            + f" {counted(guessed, 'cell')} of curves that were not measured are interpolated."
            * (guessed > 0)
        )
    if (results.effects["verdict"] == TOO_FEW).any():
        yield "Where there are fewer than three launches, intervals are within launch and describe these launches only."
    margin = f"±{percent_of(results.margin)}" if results.margin is not None else "the study's margin"
    extended = " (launches were added after a look at the results)" if results.extended else ""
    yield (
        f"A change is called a loss or a gain where p, Holm-adjusted over the rows of a baseline, is below "
        f"{effect_level(results.extended):g}{extended}, and no loss where its interval lies inside "
        f"{margin}; controls are judged at {CONTROL_LEVEL:g}."
    )
    yield from _of_steps_and_shares(results)
    yield f"{results.stamp[1]} {results.sensitivity_stamp[1]} {stamped(results)}"


def _of_steps_and_shares(results: Results) -> Iterable[str]:
    """How step times, knees and recommendations came about, where there are any."""
    if len(results.services):
        yield (
            "The rate of an open-loop service is one over the 99th percentile of the latency of its requests in a "
            "window, so its slowdown is a ratio of latencies. Requests arrived as a Poisson process, and latencies "
            "count from when a request was due; what was unanswered when a slice ended enters as longer than that "
            "(Kaplan and Meier's estimate)."
        )
    if (latency.of_steps(results)["refused"] == "").any():
        yield (
            "Quantiles of step times were taken in each launch by itself, but in none that had fewer than "
            f"{latency.needed()} steps (p50, p95, p99); one was left out where more than a tenth of the launches had "
            "fewer."
        )
    if len(results.knees):
        yield (
            "The knee of a lead is the smallest measured number of ways from which on it kept "
            f"{results.knees['kept_pct'].iloc[0]:g} % of its rate alone; its 95 % interval inverts one-sided t tests "
            "in a fixed order."
        )
    if (results.recommendations["aim"] == LIMIT).any():
        yield (
            "A lead mask is recommended where the one-sided upper bound of the lead's loss, at "
            f"{percent_of(1 - WRONG)} or, where there are several kinds of partition, more, is at most "
            f"{results.recommendations['limit_pct'].iloc[0]:g} %, each kind of partition being walked from its largest "
            "mask down, and where both a larger loss without a partition and a gain under it are proven."
        )
        met = results.recommendations[results.recommendations["verdict"].isin(ADVISED)]
        if again := int((met["confirmed_launches"] > 0).sum()):
            yield (
                f"{again} of {counted(len(met), 'recommended mask')} {'was' if again == 1 else 'were'} measured again "
                "in fresh launches, on which no choice rests."
            )


def _software(results: Results) -> Iterable[str]:
    recorded = {
        name: _distinct(record.versions.get(key, "") for record in results.measured_records)
        for key, name in OF_LAUNCHES.items()
    }
    programs = [f"{name} {' and '.join(versions)}" for name, versions in recorded.items() if versions]
    yield f"The launches were run with {listed(programs)}." if programs else ""


def _values(designs: Sequence[Mapping[str, Any]], name: str) -> str:
    """3; or 3 and 4 where designs differ."""
    return listed(_distinct(f"{design[name]:g}" for design in designs if design.get(name) is not None) or [""])


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))


# Plain text and rows -> LaTeX that pdflatex takes with the packages booktabs and graphicx.

SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # Signs of ours that the usual encodings of LaTeX lack.
    "\N{MINUS SIGN}": "$-$",
    "×": r"$\times$",
    "±": r"$\pm$",
    "·": r"$\cdot$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "→": r"$\rightarrow$",
    "√": r"$\surd$",
    "µ": r"\textmu{}",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "‡": r"\ddag{}",
    "\N{NO-BREAK SPACE}": "~",
}
_TRANSLATION = str.maketrans(SPECIAL)
ROWS = 38  # of a table that still fits a page with its caption


def escaped(text: str) -> str:
    """The text as LaTeX sets it; a line's end is a space."""
    return " ".join(text.split()).translate(_TRANSLATION).replace("\\textquotedbl{}", "''")


def tables(label: str, caption: str, heads: Sequence[str], numeric: str, rows: Sequence[Sequence[str]]) -> str:
    """One table, or several where one page does not hold it; `numeric` has r or l for each column."""
    # Each fills a page, and LaTeX holds but a few of them back.
    return "\\clearpage\n".join(
        _table(label if not number else f"{label}-{number + 1}", caption if not number else f"{caption} (continued)",
               heads, numeric, part)
        for number, part in enumerate(_pages(rows))
    )  # fmt: skip


def _pages(rows: Sequence[Sequence[str]]) -> list[Sequence[Sequence[str]]]:
    """The rows page by page; one whose first cell is empty stays with the row that names it, where that can be."""
    starts, named = [0], 0
    for place, row in enumerate(rows):
        named = place if row[0] else named
        if place - starts[-1] == ROWS:
            starts.append(named if named > starts[-1] else place)
    return [rows[start:end] for start, end in zip(starts, [*starts[1:], len(rows)], strict=True)]


def _table(label: str, caption: str, heads: Sequence[str], numeric: str, rows: Sequence[Sequence[str]]) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(caption)}}}",
        rf"\label{{{label}}}",
        r"\medskip",
        r"\footnotesize",
        r"\sbox0{%",
        rf"\begin{{tabular}}{{{numeric}}}",
        r"\toprule",
        _row(heads),
        r"\midrule",
        *map(_row, rows),
        r"\bottomrule",
        r"\end{tabular}}%",
        # As wide as it is by itself, unless the column is narrower.
        r"\ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _row(cells: Sequence[str]) -> str:
    # A cell that begins with a bracket would be read as an option of the line's end before it.
    return " & ".join(escaped(cell).replace("[", "{[}") for cell in cells) + r" \\"
