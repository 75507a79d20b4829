"""README and ``docs/``: the code runs, the links lead somewhere, the names are right."""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
import typing
from pathlib import Path

import click
import pytest
from pages import DOCS, README, ROOT, Block, anchors, blocks, headings, links, pages, prose

import acidsql
from acidsql import errors
from acidsql.acid import cdc
from acidsql.acid.properties import TABLE_PROPERTIES
from acidsql.settings import known_settings
from acidsql.sql.parsed.statements import SparkStatement, Statement
from acidsql.sql.parser import parse
from acidsql.sql.text.tokens import split_statements
from acidsql.terminal import cli

sys.path.append(str(DOCS / "generator"))
import reference

PAGES = [*pages(), ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]
BLOCKS = [block for page in PAGES for block in blocks(page)]
# test_hive_page.py, test_object_stores_page.py and test_spark_connect.py run their code.
WITH_A_SERVER = ("hive-metastore.md", "object-stores.md", "spark-connect.md")


def test_the_pages_run(spark, acid):
    """The Python and SQL blocks run from page to page in one session; ``acid`` is the test's own,
    so later pages find the tables of earlier ones."""
    names = {"spark": spark, "acid": acid, "acidsql": _Connected(acid)}
    drawn = []
    for block in BLOCKS:
        if block.reason or block.page.name in WITH_A_SERVER:
            continue
        if block.language == "python":
            text = "\n" * block.line + re.sub(r"^import acidsql$", "", block.text, flags=re.M)
            exec(compile(text, str(block.page), "exec"), names)
        elif block.language == "sql":
            for span in split_statements(block.text):
                acid.sql(span.slice(block.text)).collect()
        drawn = drawn or [(row.directory, row.rows) for row in acid.files("planes").collect()]
    picture = re.findall(r"^      (\w+_\d+_\d+_\d+)/bucket_00000 .* (\d) \w+ event",
                         README.read_text(), re.MULTILINE)  # fmt: skip
    assert sorted((name, int(events)) for name, events in picture) == sorted(drawn)


class _Connected:
    """``acidsql`` for the pages' code, but ``connect`` returns the test's session."""

    def __init__(self, session: acidsql.Session) -> None:
        self._session = session

    def connect(self, *args: object, **keywords: object) -> acidsql.Session:
        inspect.signature(acidsql.connect).bind(*args, **keywords)
        self._session.extend(keywords.get("extend", False))
        return self._session

    def __getattr__(self, name: str) -> object:
        return getattr(acidsql, name)


def test_the_first_page_is_short():
    assert len(README.read_text().splitlines()) <= 150


def test_the_first_page_lists_every_page():
    assert {page for page in PAGES if page.parent == DOCS} == set(DOCS.rglob("*.md"))


def test_the_first_page_says_what_ci_runs():
    commands = re.findall(r"^(?:exec )?(make \w+)$", (ROOT / ".ci" / "run").read_text(), re.M)
    assert commands == ["make servers", "make test"]
    for command in commands:
        assert re.search(rf"^    {command} ", README.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page):
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_code_names_pages_and_sections_that_there_are():
    """As ``docs/limits.md, "Streams"``, in docstrings, comments and messages."""
    named = r'(README|docs/[\w-]+\.md)(?:,\s+"([^"]+)")?'
    for folder in ("acidsql", "pyspark_acidsql", "tests", "examples", "benchmarks", "grammar"):
        for path in (ROOT / folder).rglob("*.py"):
            if path == Path(__file__):
                continue
            for page, section in re.findall(named, path.read_text()):
                target = README if page == "README" else ROOT / page
                assert target.exists(), f"{path}: {page}"
                assert not section or section in headings(target), f"{path}: {page}, {section}"


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_of_code_is_right_in_itself(block: Block):
    """Those that are not run, too: ``…`` stands for what is left out."""
    assert block.language in ("python", "sql", "sh", "")
    if block.language == "python":
        compile(block.text.replace("…", "..."), str(block), "exec")
    elif block.language == "sql":
        for span in split_statements(block.text):
            found = parse(span.slice(block.text), is_ours=lambda parts: True)
            assert not block.reason or not isinstance(found, SparkStatement)
    else:
        assert block.reason is None, "such a block is never run"


def test_commands_in_the_pages_exist():
    text = "\n".join(page.read_text() for page in PAGES if page.name != "CHANGELOG.md")
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE)) <= set(targets)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(re.findall(r"acidsql\[([a-z-]+)\]", text)) <= set(extras)
    options = {word for param in cli.main.params for word in param.opts}
    for line in re.findall(r"(?:^    |^|`)acidsql ([a-z-]+[^`\n#|]*)", text, re.MULTILINE):
        name, *rest = line.split()
        command = cli.main.commands.get(name)
        if isinstance(command, click.Command):
            known = options | {word for param in command.params for word in param.opts}
            assert {word for word in rest if re.match(r"--?[a-z]", word)} <= known, line


def test_plain_spark_is_warned_of_on_the_first_page():
    assert "never `spark.sql` or `spark.read.orc`" in prose(README)


# ── what the build of the site fills in ──────────────────────────────────────────────────────


def test_every_generated_part_has_one_place():
    places = [name for page in PAGES for name in reference.PLACE.findall(page.read_text())]
    assert sorted(places) == sorted(reference.PARTS)


def test_the_settings_page_has_every_setting_and_property():
    filled = reference.filled((DOCS / "settings.md").read_text())
    names = {*(one.name for one in known_settings()), *(one.name for one in TABLE_PROPERTIES)}
    for name in names:
        assert f"| `{name}` |" in filled, name
    assert "<!-- generated" not in filled


def test_every_property_in_the_code_is_in_the_list():
    """The names of properties that the code reads, found by their form."""
    named = set()
    for path in (ROOT / "acidsql").rglob("*.py"):
        named |= set(re.findall(r'properties\.get\("([^"]+)"', path.read_text()))
        named |= set(
            re.findall(r'^[A-Z_]+ = "(acidsql\.[a-z.]+)"$', path.read_text(), re.MULTILINE)
        )
    of_ours = {cdc.ORDER, cdc.SCD_TYPE, cdc.NUM_KEYS, cdc.PENDING, "acidsql.moving"}
    settings = {one.name for one in known_settings()}
    listed = {one.name for one in TABLE_PROPERTIES}
    assert {name for name in named if not name.endswith(".")} - settings - of_ours <= listed


def test_the_orc_properties_are_those_that_can_be_set():
    from acidsql.storage.orc import options

    assert [one.name for one in options.PROPERTIES] == list(options._READERS)
    defaults = {one.name: one.default for one in options.PROPERTIES if one.default}
    assert options.OrcOptions.from_properties(defaults) == options.OrcOptions.from_properties({})


@pytest.mark.slow
def test_the_errors_page_has_every_condition():
    filled = reference.filled((DOCS / "errors.md").read_text())
    listed = set(re.findall(r"^\| `([A-Z0-9_.]+)` \| [0-9A-Z, ]{5,}", filled, re.MULTILINE))
    for kind in vars(errors).values():
        if inspect.isclass(kind) and issubclass(kind, errors.AcidSqlError):
            assert kind.condition in listed
            assert f"── {kind.__name__} " in filled or f"\n{kind.__name__}\n" in filled
    rejected = (ROOT / "grammar" / "reject").glob("*.sql")
    headers = "".join(path.read_text() for path in rejected)
    assert set(re.findall(r"^-- case ([\w.]+) at", headers, re.MULTILINE)) <= listed
    compared = r'(?:condition|getCondition\(\)) == "([A-Z0-9_.]+)"'
    for path in (*(ROOT / "tests").rglob("*.py"), *DOCS.glob("*.md")):
        for condition in re.findall(compared, path.read_text()):
            assert condition in listed or condition in OF_SPARK, f"{path.name}: {condition}"


OF_SPARK = ("DIVIDE_BY_ZERO", "SCALAR_SUBQUERY_TOO_MANY_ROWS", "UNABLE_TO_INFER_SCHEMA")


def test_the_sql_page_has_every_production():
    filled = reference.filled((DOCS / "sql.md").read_text())
    text = (ROOT / "grammar" / "dml.ebnf").read_text()
    for name in re.findall(r"^(\w+) =", text, re.MULTILINE):
        assert f'<b id="{name}">' in filled, name
    assert len(re.findall(r'<a href="#(\w+)">', filled)) > 300


def test_the_sql_page_has_an_example_of_every_statement():
    shown = {
        type(parse(span.slice(block.text), is_ours=lambda _: True, setting_name=str))
        for block in blocks(DOCS / "sql.md")
        if block.language == "sql"
        for span in split_statements(block.text)
    }
    statements = set(typing.get_args(Statement)) - {SparkStatement}
    assert {kind.__name__ for kind in statements - shown} == set()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_code_in_a_page_needs_no_scrolling(page):
    lines = [line for block in blocks(page) for line in block.text.splitlines()]
    plain = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines += [line[4:] for line in plain.splitlines() if line.startswith("    ")]
    assert [line for line in lines if len(line) > WIDEST_CODE] == []


WIDEST_CODE = 88  # letters that a page of 1,200 pixels shows


def test_the_commands_page_has_every_command():
    filled = reference.filled((DOCS / "shell.md").read_text())
    for name in cli.main.commands:
        assert f"| `{name}" in filled, name


def test_the_python_page_has_every_public_name():
    text = (DOCS / "python.md").read_text()
    for name, home in acidsql._HOMES.items():
        assert f"::: {home}.{name}\n" in text or f"`acidsql.{name}`" in text, name


def test_the_menu_of_the_site_has_every_page():
    text = (ROOT / "mkdocs.yml").read_text()
    menu = re.findall(r"^ +- (?:\w+: )?([\w-]+\.md)$", text.partition("\nnav:")[2], re.MULTILINE)
    made = {"index.md", "architecture.md", "changelog.md"}
    assert sorted(menu) == sorted({page.name for page in DOCS.glob("*.md")} | made)


def test_all_first_lines_say_the_same():
    words = "SQL DML for PySpark over Hive ACID tables"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    menu = (ROOT / "mkdocs.yml").read_text()
    assert project["description"] == words
    assert f"site_description: {words}\n" in menu
    for text in (README.read_text(), acidsql.__doc__ or "", cli.main.help or ""):
        assert f"{words}: " in text


def test_the_findings_of_a_check_and_the_options_of_the_magic_are_listed():
    from acidsql.acid.findings import CONDITIONS

    filled = reference.filled((DOCS / "maintenance.md").read_text())
    assert all(f"| `{name}` |" in filled for name in CONDITIONS)
    filled = reference.filled((DOCS / "notebook.md").read_text())
    magic = (ROOT / "acidsql" / "terminal" / "magic.py").read_text()
    for option in re.findall(r"--[a-z]+", magic):
        assert f"`{option}" in filled, option
