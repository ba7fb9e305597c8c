"""Finds what Castmates ships beside its code: the workflow, the catalogue, the profile, locks, schemas and scripts.

In a clone they are folders of the clone; a wheel has copies of them in `castmates/_clone` (pyproject.toml). Run in a
clone, whatever package is installed, the clone's are used; elsewhere those of the package that runs.
"""

from pathlib import Path

from castmates.errors import CastmatesError

PACKAGE = Path(__file__).resolve().parent
IN_A_WHEEL = PACKAGE / "_clone"
MARK = Path("workflow/rules/common.smk")  # what no other project has
SCHEMAS = ("study", "catalogue")
MACHINES = PACKAGE / "machines"  # captures, and bundles of what was measured there
CAPTURE, BUNDLE = ".json.gz", ".tar.gz"


def home() -> Path:
    """The folder that holds them; a relative path in a clone, so that messages stay short."""
    return Path() if MARK.is_file() else _of_the_package()


def snakefile() -> Path:
    """The workflow, for `snakemake --snakefile` or a `module`."""
    return home() / "workflow" / "Snakefile"


def profile() -> Path:
    """The profile, for `snakemake --workflow-profile`: it keeps a changed workflow from measuring anything again."""
    return home() / "workflow" / "profiles" / "default"  # where Snakemake looks for it beside a Snakefile


def catalogue() -> Path:
    """The folder of the catalogue's files."""
    return home() / "config" / "workloads"


def studies() -> Path:
    """The folder of the studies that are examples."""
    return home() / "config" / "studies"


def findings() -> Path:
    """The folder of the rules of findings."""
    return home() / "config" / "findings"


def pages() -> dict[str, Path]:
    """The pages of the documentation, by what `castmates help` calls them."""
    found = {file.stem: file for file in sorted((home() / "docs").glob("*.md"))}
    return dict(sorted({**found, "configuration": home() / "config" / "README.md"}.items()))


def schema(name: str) -> Path:
    """The JSON Schema of a `study`, a `catalogue` or a `findings` file, for editors."""
    return home() / "config" / "schemas" / f"{name}.schema.json"


def machines() -> dict[str, Path]:
    """The machines that studies can be planned for, by name; a bundle takes the place of a capture."""
    files = ((kind, file) for kind in (CAPTURE, BUNDLE) for file in sorted(MACHINES.glob(f"*{kind}")))
    return {file.name.removesuffix(kind): file for kind, file in files}


def machine(named: Path | str) -> Path:
    """The file of a machine: that of this path, or the one that ships under this name."""
    file, known = Path(named), machines()
    if file.is_file() or "/" in str(named) or file.suffix:
        return file
    if found := known.get(str(named)):
        return found
    raise CastmatesError(f"'{named}' is neither a file nor a machine that ships with Castmates: {', '.join(known)}.")


def include() -> Path:
    """The folder of castmates_phases.h, for programs in C and C++."""
    return PACKAGE / "include"


def environments() -> Path:
    """The folder of the locks: the project's own `envs`, where it has one with locks in it, replaces ours."""
    own = Path("envs")
    return own if any(own.glob("*.lock")) else home() / "envs"


def script(rule: str) -> Path:
    """The script of a rule: always the one that belongs to this package, wherever the sweep runs."""
    return _of_the_package() / "scripts" / f"{rule}.py"


def clone() -> Path | None:
    """The clone that this package lies in, if it does."""
    return PACKAGE.parent if (PACKAGE.parent / MARK).is_file() else None


def _of_the_package() -> Path:
    return clone() or IN_A_WHEEL
