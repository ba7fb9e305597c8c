"""Finds the places of a module that can be changed, with mutmut's operators, and names each change by what it is."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.mutators import mutation_operators

from tests.mutation import ROOT

_PASS = cst.SimpleStatementSuite([cst.Pass()])
_STATEMENTS = (cst.SimpleStatementLine, cst.BaseCompoundStatement, cst.ExceptHandler, cst.MatchCase)
_SKIPPED = (cst.Annotation, cst.Import, cst.ImportFrom, cst.Decorator, cst.TypeAlias)
# These arguments hold prose, or choose between ways to the same result.
_SKIPPED_ARGUMENTS = {"description", "title", "examples", "encoding", "strict", "observed"}
_SKIPPED_CALLS = {"len", "isinstance", "NewType", "TypeVar", "cast"}


@dataclass(frozen=True)
class Mutant:
    """One change. `ordinal` distinguishes equal changes of equal statements of a function."""

    area: str
    module: str
    function: str
    operator: str
    before: str
    after: str
    ordinal: int = 0


@dataclass(frozen=True)
class Site:
    """Where a mutant is in the tree at hand, and the lines whose tests may notice it."""

    mutant: Mutant
    lines: range
    at_import: bool
    tree: cst.Module
    node: cst.CSTNode
    changed: cst.CSTNode

    def source(self) -> str:
        """The whole module with the change."""
        return self.tree.deep_replace(self.node, self.changed).code


@cache
def sites(module: str, area: str) -> tuple[Site, ...]:
    """All mutants of a module of this tree, in its order."""
    wrapper = MetadataWrapper(cst.parse_module((ROOT / module).read_text()))
    finder = _Finder()
    wrapper.visit(finder)
    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for function, statement, operator, node, changed, lines, at_import in finder.found:
        before, after = _text(statement), _text(statement, node, changed)
        if before == after:
            continue
        key = (function, operator, before, after)
        mutant = Mutant(area, module, *key, seen[key])
        seen[key] += 1
        found.append(Site(mutant, lines, at_import, wrapper.module, node, changed))
    return tuple(found)


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.depth = 0  # of functions: what is outside of them, and the head of one, runs at import
        self.statements: list[cst.CSTNode] = []
        self.found: list[tuple[str, cst.CSTNode, str, cst.CSTNode, cst.CSTNode, range, bool]] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _STATEMENTS):
            self.statements.append(node)
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self.names.append(node.name.value)
            self.depth += isinstance(node, cst.FunctionDef)
        if self._is_skipped(node):
            return False
        if self.statements:
            for operator, changed in _changes(node):
                place = (".".join(self.names) or "<module>", self.statements[-1], operator, node, changed)
                at_import = self.depth - isinstance(self.statements[-1], cst.FunctionDef) == 0
                self.found.append((*place, self._lines(), at_import))
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self.names.pop()
            self.depth -= isinstance(original_node, cst.FunctionDef)
        if isinstance(original_node, _STATEMENTS):
            self.statements.pop()

    def _lines(self) -> range:
        """The lines of the statement; of a compound one, its head's."""
        statement = self.statements[-1]
        span = self.get_metadata(PositionProvider, statement)
        last = span.end.line
        body = getattr(statement, "body", None)
        if isinstance(body, cst.CSTNode):
            last = max(span.start.line, self.get_metadata(PositionProvider, body).start.line - 1)
        return range(span.start.line, last + 1)

    @staticmethod
    def _is_skipped(node: cst.CSTNode) -> bool:
        if isinstance(node, _SKIPPED):
            return True
        if isinstance(node, cst.Arg):
            return node.keyword is not None and node.keyword.value in _SKIPPED_ARGUMENTS
        if isinstance(node, cst.Call):
            return isinstance(node.func, cst.Name) and node.func.value in _SKIPPED_CALLS
        if isinstance(node, cst.Assign) and isinstance(target := node.targets[0].target, cst.Name):
            return target.value[0].isupper() and not target.value.isupper()  # the name of a type
        return isinstance(node, cst.If) and isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"


def _changes(node: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """What mutmut makes of a node, less changes of the wording of messages."""
    if _is_prose(node):
        return
    for kind, operator in mutation_operators:
        if isinstance(node, kind):
            for changed in operator(node):
                if not _drops_nothing_much(node, changed):
                    yield operator.__name__.removeprefix("operator_"), changed


def _is_prose(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleString) and (" " in node.value or node.value.startswith(('"""', "'''")))


def _drops_nothing_much(node: cst.CSTNode, changed: cst.CSTNode) -> bool:
    """Whether a call only loses prose, or has None in the place of False."""
    if not (isinstance(node, cst.Call) and isinstance(changed, cst.Call)):
        return False
    kept = {id(argument) for argument in changed.args}
    return any(
        _is_prose(argument.value)
        or (argument.keyword and argument.keyword.value in _SKIPPED_ARGUMENTS)
        or (
            isinstance(argument.value, cst.Name)
            and argument.value.value == "False"
            and len(changed.args) == len(node.args)
        )
        for argument in node.args
        if id(argument) not in kept
    )


def _text(statement: cst.CSTNode, node: cst.CSTNode | None = None, changed: cst.CSTNode | None = None) -> str:
    """The statement in one layout, whatever the formatter made of it; of a compound one, its head."""
    head = _head(changed if node is statement and changed else statement)
    if node is not None and changed is not None and node is not statement:
        head = head.deep_replace(node, changed)
    return " ".join(ast.unparse(ast.parse(cst.Module([head]).code)).split())


def _head(statement: cst.CSTNode) -> cst.CSTNode:
    if isinstance(statement, cst.SimpleStatementLine):
        return statement.with_changes(leading_lines=())
    if isinstance(statement, cst.ExceptHandler):
        return cst.Try(_PASS, [_head_alone(statement)])
    if isinstance(statement, cst.MatchCase):
        return cst.Match(cst.Name("_"), [_head_alone(statement)])
    if isinstance(statement, cst.Match):
        return statement.with_changes(leading_lines=(), cases=[_head_alone(case) for case in statement.cases])
    return _head_alone(statement)


def _head_alone(statement: cst.CSTNode) -> cst.CSTNode:
    rest = {"body": _PASS, "leading_lines": ()}
    for name, nothing in {"orelse": None, "finalbody": None, "decorators": (), "lines_after_decorators": ()}.items():
        if hasattr(statement, name):
            rest[name] = nothing
    if isinstance(statement, cst.Try):
        rest["handlers"] = [_head_alone(handler) for handler in statement.handlers]
    return statement.with_changes(**rest)


def module_name(module: str) -> str:
    """The name that Python imports a file of this tree by."""
    parts = Path(module).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
