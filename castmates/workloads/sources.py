"""Which files of ours run where a module of this package is started, and what in them can change what is measured."""

import ast
import hashlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "castmates"
DATA_FILES = "DATA_FILES"  # the variable in which a module names the files beside it that it reads


def files_run_by(command: Sequence[str]) -> set[Path]:
    """The files of ours that run where a command names modules of this package: these, and all that they import."""
    reached: set[Path] = set()
    for name in re.findall(rf"\b{PACKAGE}(?:\.[a-z_]\w*)+", " ".join(command)):
        for file in _files_of(name, started=True):
            _reach(file, reached)
    return reached


def digest_of(files: Iterable[Path]) -> str:
    """Digest what is in these files, wherever they lie; comments, docstrings and imports of ours do not count."""
    texts = sorted(_digest_of_file(file, file.stat().st_mtime_ns) for file in files)
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def _reach(file: Path, reached: set[Path]) -> None:
    if file in reached or file == ROOT / PACKAGE / "__init__.py":  # the version: a release measures nothing again
        return
    reached.add(file)
    imported, data_files = _names_in(file, file.stat().st_mtime_ns)
    reached.update(file.with_name(name) for name in data_files)
    for name in imported:
        for other in _files_of(name):
            _reach(other, reached)


@cache
def _names_in(file: Path, _mtime: int) -> tuple[frozenset[str], tuple[str, ...]]:
    """What of ours a file imports, and the files beside it that it reads."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(_imported(tree)), tuple(_data_files(tree))


@cache
def _digest_of_file(file: Path, _mtime: int) -> str:
    return hashlib.sha256(_what_counts(file)).hexdigest()


def _files_of(name: str, started: bool = False) -> Iterator[Path]:
    """The files that run when a module or something in it is imported: its own, and those of the packages around it."""
    place = ROOT
    for part in name.split("."):
        place /= part
        if not place.is_dir():
            break
        yield place / "__init__.py"
    if place.with_suffix(".py").is_file():
        yield place.with_suffix(".py")
    elif started and (place / "__main__.py").is_file():
        yield place / "__main__.py"


def _imported(tree: ast.Module) -> Iterator[str]:
    """What is imported of ours anywhere in a module, by name or, as a whole folder, by a name that is put together."""
    for node in _running(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and _ours(node.module):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            folder = str(node.values[0].value).rstrip(".")
            if _ours(folder):
                place = ROOT.joinpath(*folder.split("."))
                yield from (f"{folder}.{file.stem}" for file in place.glob("*.py"))


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module, but for those that only a type checker sees."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        yield node
        yield from _running(node)


def _ours(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == PACKAGE


def _data_files(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [DATA_FILES]:
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


def _what_counts(file: Path) -> bytes:
    """A file's text without what cannot change how it runs: comments, docstrings, blank lines, imports of ours.

    Imports of ours are left out because what they name is digested itself: a module may be moved.
    """
    if file.suffix != ".py":
        return file.read_bytes()
    text = file.read_text(encoding="utf-8")
    lines: dict[int, str] = dict(enumerate(text.splitlines(), start=1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT:
            lines[row] = lines[row][:column].rstrip()
        if token.type in (tokenize.COMMENT, tokenize.NL) and not lines.get(row, "").strip():
            lines.pop(row, None)  # a blank line inside a text is no token, and counts
    for first, last in _left_out(ast.parse(text)):
        for row in range(first, last + 1):
            lines.pop(row, None)
    return "\n".join(lines.values()).encode()


def _left_out(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """First and last line of each docstring and of each import of ours."""
    for node in ast.walk(tree):
        ours = (isinstance(node, ast.ImportFrom) and _ours(node.module)) or (
            isinstance(node, ast.Import) and all(_ours(alias.name) for alias in node.names)
        )
        if isinstance(node, ast.stmt) and (ours or _is_text_alone(node)):
            yield node.lineno, node.end_lineno or node.lineno


def _is_text_alone(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
