"""What leaves the machine: no name of it, of its users and of their folders; and one archive of what is left."""

import html
import io
import json
import os
import platform
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import castmates
from castmates.errors import CastmatesError
from castmates.files import bytes_of, mapping_in, replace, writing
from castmates.linux.ownership import user_name
from castmates.machine.capture.contents import DISTRIBUTIONS, release
from castmates.study.reasons import listed_in

if TYPE_CHECKING:
    import pandas as pd

MOST = 20_000_000  # bytes of the archive
HOST, USER, PATH, ADDRESS, PROGRAM = "(host)", "(user)", "(path)", "(address)", "(program)"
# They tell nobody whose machine it is, and stand in texts of ours.
OF_NOBODY = {"root", "nobody", "user", "admin", "localhost", "host", "server", "node", "worker", "machine"}
OF_NOBODY |= {"vm", "guest", "linux", "test", "castmates", *DISTRIBUTIONS}
KERNEL = "kernel"  # its version, in which who builds it may put any word; a capture has it without these
FIELD = re.compile(r"[a-z]+(_[a-z]+)*")  # what our own records call a thing, even where somebody is called that
PLACES = re.compile(r"/(?:home\w*|root|[Uu]sers|proj\w*|nfs\w*|mnt|media|srv|data|scratch)/[^\s\"'<>,;:()\[\]{}`]+")
ADDRESSES = re.compile(
    r"(?<!version )(?<!\d\.)\b(?:\d{1,3}\.){3}\d{1,3}\b(?!\.\d)"  # IPv4
    r"|\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b"  # MAC
    r"|\b(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b"
    r"|\b[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){1,5}::(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4}\b"  # not two groups: `add::fed`
    r"|\b[0-9a-f]{1,4}::(?:[0-9a-f]{1,4}:){1,5}[0-9a-f]{1,4}\b"
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",  # of a disk, a board, a GPU
    re.IGNORECASE,
)
# Who took time, as a reason of the ledger names them: before the number of a process.
TAKERS = re.compile(
    r"(\b(?:mostly|among them|by) |(?:[;,(] ?|^)(?:(?:mostly|among them|by) )?)[^;,]*? \(pid \d+\)", re.MULTILINE
)

ALONE, NO_MORE = r"(?<![A-Za-z0-9])", r"(?![A-Za-z0-9])"
# What stands before and after a name: of a host its domain goes too, of a folder what is in it.
AROUND = {
    HOST: (ALONE, rf"(?:\.[\w-]+)*{NO_MORE}"),
    USER: (ALONE, NO_MORE),
    PATH: ("", r"(?!\w)[^\s\"'<>,;:()\[\]{}`]*"),
}


@dataclass(frozen=True)
class Names:
    """The names of this machine, its users and their folders, each with the word that takes its place."""

    words: Mapping[str, str]

    @classmethod
    def here(cls, *folders: Path) -> "Names":
        """Of the host, of who runs this or has called sudo, of their homes and of these folders."""
        hosts = {platform.node(), platform.node().partition(".")[0]}
        ids = {os.getuid(), *(place.stat().st_uid for place in (Path(), *folders) if place.exists())}
        users = {user_name(uid) for uid in ids if not user_name(uid).startswith("uid ")}
        users |= {os.environ.get(name, "") for name in ("SUDO_USER", "USER", "LOGNAME")}
        homes = {os.path.expanduser(f"~{user}") for user in users if user}  # noqa: PTH111 (of others, too)
        ours = {Path(castmates.__file__).parents[1], Path(tempfile.gettempdir()), Path.cwd(), *folders}
        places = {name for place in ours for name in (str(place.absolute()), str(place.resolve()))}
        return cls.of(hosts, users, {*homes, *places, os.environ.get("HOME", "")})

    @classmethod
    def of(cls, hosts: Iterable[str], users: Iterable[str], places: Iterable[str]) -> "Names":
        """These, but for those that are nobody's."""
        found = {name: PATH for name in places if len(name) > 2 and name.startswith("/") and name != "/tmp"}
        found |= {name: USER for name in users if len(name) > 1 and name not in OF_NOBODY}
        found |= {name: HOST for name in hosts if len(name) > 1 and name.lower() not in OF_NOBODY}
        return cls(dict(sorted(found.items(), key=lambda one: -len(one[0]))))  # a folder before those above it

    def without(self, value: Any) -> Any:  # noqa: ANN401 (what JSON has)
        """Data without names, in all its texts; fields of ours are called what they are called."""
        match value:
            case str():
                return self._text(value)
            case Mapping():
                return {
                    key if FIELD.fullmatch(str(key)) else self._text(str(key)): self._entry(key, one)
                    for key, one in value.items()
                }
            case list() | tuple():
                return [self.without(one) for one in value]
        return value

    def _entry(self, key: object, value: Any) -> Any:  # noqa: ANN401 (what JSON has)
        if key == KERNEL and isinstance(value, str):
            return (release(value) or "").strip()
        return self.without(value)

    def table(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """A table without names: all of its texts are looked at, and of other programs and hosts nothing stays."""
        if {"reasons", "blamed"} <= {*table.columns}:
            pairs = zip(table["reasons"], table["blamed"], strict=True)
            table = table.assign(reasons=[_without_takers(reasons, blamed) for reasons, blamed in pairs], blamed="")
        if "host" in table:
            table = table.assign(host=table["host"].map(lambda host: host and HOST, na_action="ignore"))
        texts = [name for name in table.columns if table[name].dtype.kind not in "biufmM"]
        return table.assign(**{name: table[name].map(self.without, na_action="ignore") for name in texts})

    def found(self, name: str, content: bytes) -> str:
        """The first name that a file of the bundle still has; "" where it has none."""
        for text in _texts(name, content):
            if (without := self._text(text)) != text:
                return next(word for word in (HOST, USER, PATH, ADDRESS, PROGRAM) if word in without)
        return ""

    def _text(self, text: str) -> str:
        for name, word in self.words.items():
            if name.lower() in text.lower():
                begin, end = AROUND[word]
                text = re.sub(f"{begin}{re.escape(name)}{end}", word, text, flags=re.IGNORECASE * (word == HOST))
        text = TAKERS.sub(rf"\1{PROGRAM}", text)
        return ADDRESSES.sub(ADDRESS, PLACES.sub(PATH, text))


def _without_takers(reasons: str, blamed: str) -> str:
    for who in listed_in(blamed):
        if "(pid " in who:
            reasons = reasons.replace(who, PROGRAM)
    return reasons


def _texts(name: str, content: bytes) -> Iterator[str]:
    """What is looked at in a file of the bundle: in a page what is read of it, less the words of its template."""
    if name.endswith(".parquet"):
        import pandas as pd

        yield from _strings(pd.read_parquet(io.BytesIO(content)).to_dict("list"))
    elif name.endswith(".json"):
        yield from _strings(mapping_in(content))
    elif name.endswith(".html"):
        own = _vocabulary()
        yield from (text for text in _read(content.decode()) if not own >= {*re.findall(r"[\w-]+", text)})
    elif not name.endswith(".gz"):  # a capture: each of its texts is of a form that has no room for a name
        yield from content.decode().splitlines()[1:] if name.endswith(".csv") else content.decode().splitlines()


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for key, one in value.items():
                yield from () if FIELD.fullmatch(str(key)) else (str(key),)
                yield from _strings(one)
        case list() | tuple():
            for one in value:
                yield from _strings(one)


def _read(page: str) -> list[str]:
    """What somebody reads of a page."""
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    read = re.findall(r">([^<>]+)", body) + re.findall(r'(?:href|title|aria-label)="([^"]*)"', body)
    return [html.unescape(text) for text in read]


def _vocabulary() -> set[str]:
    """The words of the page's template."""
    text = (files("castmates.report.page") / "templates" / "hardware_day.html.j2").read_text(encoding="utf-8")
    return {*re.findall(r"[\w-]+", text)}


# The archive.


def pack(file: Path, members: Mapping[str, Path], names: Names, optional: str = "tables/") -> list[str]:
    """Write the archive whole or not at all; list in sentences what is not in it, and why."""
    contents, out = {}, []
    for name, place in members.items():
        content = bytes_of(place)
        try:
            named = names.found(name, content)
        except ValueError as problem:
            named = f"something that cannot be read: {problem}"
        if named:
            out.append(f"{name} is not in the bundle, because it has a name: {named}.")
        else:
            contents[name] = content
    while len(packed := _archive(contents)) > MOST:
        spare = [name for name in contents if name.startswith(optional)]
        if not spare:
            raise CastmatesError(f"{file}: without tables, too, it would be larger than {MOST // 1_000_000} MB.")
        largest = max(spare, key=lambda name: len(contents[name]))
        del contents[largest]
        out.append(f"{largest} is not in the bundle, which would be larger than {MOST // 1_000_000} MB.")
    with writing(file):
        replace(file, lambda temporary: temporary.write_bytes(packed))
    return out


def _archive(contents: Mapping[str, bytes]) -> bytes:
    """Pack it; neither users nor times are written with the files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in contents.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
    return packed.getvalue()


def as_text(value: object) -> str:
    """Data as a file of the bundle has it."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
