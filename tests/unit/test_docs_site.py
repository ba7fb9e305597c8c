"""The documentation's site: what is generated is complete, links lead somewhere, every page has its place."""

import json
import re
from pathlib import Path

import pytest
import yaml

from castmates.cli.main import COMMANDS
from castmates.machine.quirks import table as quirks_table
from castmates.results.columns.registry import TABLES
from docs_site import commands, examples, quirks, study_keys, tables
from docs_site.links import FENCED, LINK, relinked
from docs_site.pages import ELSEWHERE, GENERATED

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", *(ROOT / source for source in ELSEWHERE)]


def keys_of(schema):
    yield from schema.get("properties", ())
    for definition in schema.get("$defs", {}).values():
        yield from definition.get("properties", ())


@pytest.mark.parametrize("write", [study_keys.study_page, study_keys.catalogue_page])
def test_every_key_of_the_schema_is_on_the_page(write):
    name = "study" if write is study_keys.study_page else "catalogue"
    page = write(ROOT)
    schema = json.loads((ROOT / f"config/schemas/{name}.schema.json").read_text())
    keys = set(keys_of(schema))
    assert len(keys) > 20
    assert not [key for key in keys if f"| `{key}` |" not in page]
    for target in re.findall(r"\]\(#([^)]+)\)", page):
        assert re.search(rf"^## {target}$", page, re.MULTILINE | re.IGNORECASE), target


def test_every_command_is_on_the_page():
    page = commands.page(ROOT)
    names = {one.name for one in COMMANDS}
    assert len(names) > 12
    assert not [name for name in names if f"castmates {name}" not in page]


def test_every_table_is_on_the_page_with_its_columns():
    page = tables.page(ROOT)
    for name, table in TABLES.items():
        section = re.search(rf"^### {name}$(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        assert section, name
        assert not [column for column in table if f"| `{column}` |" not in section[1]], name


def test_every_page_has_its_place_and_every_place_its_page():
    def places(entry):
        if isinstance(entry, str):
            yield entry
        for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
            yield from places(part)

    named = sorted(places(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    files = [str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")]
    assert named == sorted([*files, *ELSEWHERE.values(), *GENERATED])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(page):
    made = {f"docs/{place}" for place in GENERATED}
    for part in FENCED.split(page.read_text())[::2]:
        for link in LINK.finditer(part):
            path = link["target"].partition("#")[0]
            if path and not re.match(r"\w+:", path):
                target = (page.parent / path).resolve()
                assert target.exists() or str(target.relative_to(ROOT)) in made, f"{link[0]}"


@pytest.mark.parametrize(
    ("place", "text", "wanted"),
    [
        ("compare.md", "[all keys](../config/README.md#counters)", "[all keys](configuration.md#counters)"),
        ("contributing/tests.md", "see [the lab](lab/README.md)", "see [the lab](lab.md)"),
        ("configuration.md", "[parts](../docs/partitions.md)", "[parts](partitions.md)"),
        ("contributing/index.md", "![](docs/contributing/launches.png)", "![](launches.png)"),
        ("index.md", "[a study](../config/config.yaml)", "a study (`config/config.yaml`)"),
        ("index.md", "`[a](../config/README.md)` and [x](https://example.org)", None),
        ("index.md", "```\n[a](../config/README.md)\n```", None),
    ],
)
def test_links_are_those_of_the_site(place, text, wanted):
    assert relinked(text, place) == (wanted or text)


def test_examples_are_run_and_their_output_is_written(tmp_path):
    page = (
        "<!-- file: a.txt -->\n```yaml\none\n```\n<!-- do: echo two >> a.txt -->\n```sh\nanything\n```\n"
        "<!-- run: cat a.txt -->\n```text\nold\n```\nlines: <!-- value: wc -l < a.txt -->7<!-- end --> in all\n"
    )
    found = examples.filled(page, tmp_path)
    assert found == page.replace("old\n", "one\ntwo\n").replace("-->7<!--", "-->2<!--")
    assert examples.filled(found, tmp_path) == found
    with pytest.raises(SystemExit, match="status 1"):
        examples.filled("<!-- do: false -->", tmp_path)


@pytest.mark.parametrize("page", examples.PAGES)
def test_no_line_begins_with_a_value(page):
    """Markdown takes a line that begins with a comment for HTML, and ends the list that it stands in."""
    assert not re.search(r"^\s*<!-- value", (ROOT / page).read_text(), re.MULTILINE)


def test_every_quirk_is_on_its_page_with_its_sources():
    page = quirks.page(ROOT)
    for quirk in quirks_table():
        assert f"## {quirk.title}" in page
        assert all(f"]({url})" in page for url in quirk.sources)
    assert "GenuineIntel family 6 model 85 stepping 0–4; kernels: from 4.14; flags: rdt_a; errata: SKZ4" in page
    assert "without the fix, which is in 6.12, 6.11.6, 6.6.59, 6.1.115" in page
