"""Which files of ours run where a module of this package is started, and what in them can change what is measured."""

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "castmates"
Place = tuple[int, int]  # row and column, in bytes
Cut = tuple[Place, Place, str]
Rewrite = Callable[[ast.Import | ast.ImportFrom], str]
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")  # of statements, in other statements
DATA_FILES = "DATA_FILES"  # the variable in which a module names the files beside it that it reads


def files_run_by(command: Sequence[str]) -> set[Path]:
    """The files of ours that run where a command names modules of this package: these, and all that they import."""
    reached: set[Path] = set()
    for file in _started(command):
        _reach(file, reached)
    return reached


def digest_of(command: Sequence[str]) -> str:
    """Digest the files of ours that a command runs, wherever they lie; comments and docstrings do not count."""
    started = [_digest_of_file(file) for file in _started(command)]
    reached = sorted(_digest_of_file(file) for file in files_run_by(command))
    return hashlib.sha256("\n".join([*started, *reached]).encode()).hexdigest()


def _started(command: Sequence[str]) -> list[Path]:
    names = re.findall(rf"\b{PACKAGE}(?:\.[a-z_]\w*)+", " ".join(command))
    return [file for name in names for file in _files_of(name, started=True) if file != _version_file()]


def _version_file() -> Path:
    """The package's own `__init__`, which holds the version: a release has nothing measured again."""
    return ROOT / PACKAGE / "__init__.py"


def _reach(file: Path, reached: set[Path]) -> None:
    if file in reached or file == _version_file():
        return
    reached.add(file)
    imported, data_files = _names_in(file)
    reached.update(file.with_name(name) for name in data_files)
    for name in imported:
        for other in _files_of(name):
            _reach(other, reached)


@cache
def _names_in(file: Path) -> tuple[frozenset[str], tuple[str, ...]]:
    """What of ours a file imports, and the files beside it that it reads."""
    source = _source(file)
    return frozenset(_imported(source)), tuple(_data_files(source.tree))


@cache
def _files_of(name: str, started: bool = False) -> tuple[Path, ...]:
    """The files that run when a module or something in it is imported: its own, and those of the packages around it."""
    place, files = ROOT, []
    for part in name.split("."):
        place /= part
        if not place.is_dir():
            break
        files.append(place / "__init__.py")
    if place.with_suffix(".py").is_file():
        files.append(place.with_suffix(".py"))
    elif started and (place / "__main__.py").is_file():
        files.append(place / "__main__.py")
    return tuple(files)


def _imported(source: "_Source") -> Iterator[str]:
    """What is imported of ours anywhere in a module, by name or, as a whole folder, by a name that is put together."""
    for node in _statements(source.tree, typing=False):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and _ours(node.module):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
    for node in ast.walk(source.tree) if source.puts_names_together else ():
        if isinstance(node, ast.JoinedStr) and (folder := _folder_of(node)):
            yield from (f"{folder}.{file.stem}" for file in ROOT.joinpath(*folder.split(".")).glob("*.py"))


def _folder_of(text: ast.JoinedStr) -> str:
    """The package whose modules a text such as f"castmates.workloads.{name}" can name, or ""."""
    first = text.values[0] if text.values else None
    found = re.fullmatch(rf"({PACKAGE}(?:\.\w+)+)\.", str(first.value)) if isinstance(first, ast.Constant) else None
    return found[1] if found else ""


def _statements(tree: ast.Module, typing: bool = True) -> Iterator[ast.AST]:
    """All statements of a module; without `typing`, but for those that only a type checker sees."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for field in BODIES if typing or not _for_types(node) else BODIES[1:]:
            left += getattr(node, field, ())


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == PACKAGE


def _imports_ours(node: ast.Import | ast.ImportFrom) -> bool:
    if isinstance(node, ast.ImportFrom):
        return _ours(node.module)
    return all(_ours(alias.name) for alias in node.names)


def _data_files(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [DATA_FILES]:
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


@cache
def _digest_of_file(file: Path) -> str:
    """Digest a file, with what it imports of ours by content instead of by place: a module may be moved."""
    if file.suffix != ".py":
        return hashlib.sha256(file.read_bytes()).hexdigest()
    return hashlib.sha256(_source(file).reduced(_by_content)).hexdigest()


def _by_content(node: ast.Import | ast.ImportFrom) -> str:
    """An import of ours with the content of what it names in place of the name."""
    names = []
    for alias in node.names:
        module = f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name
        *_, file = _files_of(module)
        within = alias.name if isinstance(node, ast.ImportFrom) and file.stem != alias.name else ""
        names.append(f"{_own_digest(file)} {within} as {alias.asname or alias.name}")
    return f"import {'; '.join(sorted(names))}"


@cache
def _own_digest(file: Path) -> str:
    """Digest a file by itself, whatever it imports of ours."""
    if file == _version_file():
        return ""
    return hashlib.sha256(_source(file).reduced(_nothing)).hexdigest()


def _nothing(_node: ast.Import | ast.ImportFrom) -> str:
    return "import"


@cache
def _source(file: Path) -> "_Source":
    return _Source(file.read_bytes())


class _Source:
    """A Python file, to be reduced to what decides how it runs."""

    def __init__(self, text: bytes) -> None:
        self.tree = ast.parse(text)
        self._rows = dict(enumerate(text.splitlines(), start=1))
        self._blank: set[int] = set()  # rows that are left out where nothing remains of them
        self._comments = list(self._comments_in(text))
        self.puts_names_together = any(start + PACKAGE.encode() in text for start in (b'f"', b"f'"))
        nodes = [node for node in _statements(self.tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr)]
        self._imports = [node for node in nodes if not isinstance(node, ast.Expr) and _imports_ours(node)]
        # Docstrings, and values that are not used.
        self._unused = [node for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]

    def reduced(self, of_ours: Rewrite) -> bytes:
        """The text without comments, docstrings and blank lines, with imports of ours as they are given."""
        rows, blank = dict(self._rows), set(self._blank)
        cuts = [*self._comments, *((*_ends(node), "") for node in self._unused)]
        cuts += [(*_ends(node), of_ours(node)) for node in self._imports]
        for (first, left), (last, right), instead in sorted(cuts, key=lambda cut: cut[0], reverse=True):
            rows[first] = (rows[first][:left] + instead.encode() + rows[last][right:]).rstrip()
            blank.add(first)
            for row in range(first + 1, last + 1):
                del rows[row]
        return b"\n".join(row for number, row in rows.items() if number not in blank or row.strip())

    def _comments_in(self, text: bytes) -> Iterator[Cut]:
        """Comments, and blank lines: one within a text is no token, and counts."""
        for token in tokenize.tokenize(io.BytesIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.NL) and (row := token.start[0]) in self._rows:
                self._blank.add(row)
                if token.type == tokenize.COMMENT:
                    start = len(token.line[: token.start[1]].encode())
                    yield (row, start), (row, start + len(token.string.encode())), ""


def _ends(node: ast.stmt) -> tuple[Place, Place]:
    return (node.lineno, node.col_offset), (node.end_lineno or node.lineno, node.end_col_offset or 0)
