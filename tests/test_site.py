"""The documentation as a site: it builds without a warning, and its search finds the right page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import browser
import pytest
from pages import DOCS, ROOT

import acidsql

pytest.importorskip("material", reason="the extra docs")
sys.path.append(str(DOCS / "generator"))
import hooks

pytestmark = pytest.mark.slow
REPOSITORY = "https://code.example.org/data/acidsql"
# What users of Delta Lake, Iceberg and Hive look for, and the page that tells them how acidsql does
# it. The theme's search puts the first one on top.
ANSWERS = {
    "upsert": ["sql.html"],
    "update": ["sql.html"],
    "merge": ["sql.html"],
    "vacuum": ["maintenance.html"],
    "optimize": ["maintenance.html"],
    "time travel": ["history.html"],
    "versionAsOf": ["history.html"],
    "insert": ["sql.html"],
    "saveAsTable": ["spark-sql.html"],
    "insertInto": ["spark-sql.html"],
    "DeltaTable": ["dataframes.html"],
    "foreachBatch": ["streams.html"],
    "kafka": ["streams.html"],
    "debezium": ["replication.html"],
    "change data feed": ["history.html"],
    "create table": ["tables.html"],
    "schema evolution": ["columns.html", "sql.html"],
    "jupyter": ["notebook.html"],
    "s3": ["object-stores.html"],
    "trino": ["hive-metastore.html"],
    "lock": ["transactions.html"],
    "tblproperties": ["settings.html"],
    "sqlstate": ["errors.html"],
    "iceberg": ["comparison.html"],
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as ``make docs`` builds it."""
    place = tmp_path_factory.mktemp("site")
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(place)],
        cwd=ROOT,
        env={**os.environ, "ACIDSQL_REPOSITORY": REPOSITORY, "NO_MKDOCS_2_WARNING": "1"},
        check=True,
    )
    return place


def test_a_page_has_the_version_the_repository_and_its_pictures(site):
    page = (site / "how-it-works.html").read_text("utf-8")
    assert f"acidsql {acidsql.__version__}" in page and f'href="{REPOSITORY}"' in page
    assert 'src="pictures/phases.svg"' in page and (site / "pictures" / "phases.svg").exists()
    first = (site / "index.html").read_text("utf-8")
    assert 'src="pictures/notebook.svg"' in first
    assert not (site / "ruff.toml").exists() and not (site / "generator").exists()


def test_the_search_finds_the_page_that_a_user_of_another_format_means(site, tmp_path):
    found = first_pages(site, tmp_path, list(ANSWERS))
    wrong = {
        words: pages[:3]
        for words, pages in found.items()
        if pages[: len(ANSWERS[words])] != ANSWERS[words]
    }
    assert wrong == {}


def test_changelog_and_architecture_come_after_the_pages_for_users(site, tmp_path):
    for words, pages in first_pages(site, tmp_path, ["compaction", "partition", "stream"]).items():
        assert not {"changelog.html", "architecture.html"} & set(pages[:3]), words


@pytest.mark.parametrize("width", [1200, 1400])
def test_code_fits_on_a_page(site, tmp_path, width):
    """Chromium lays the page with the longest lines out, with the site's own style."""
    if reason := browser.missing():
        pytest.skip(reason)
    for name in ("sql.html", "index.html", "plain-spark.html"):
        page = (site / name).read_text("utf-8")
        base = f'<base href="{site.as_uri()}/">'
        question = """[...document.querySelectorAll("pre > code")]
            .filter(code => code.scrollWidth > code.clientWidth + 1)
            .map(code => code.textContent.slice(0, 200))"""
        wide = browser.ask(page.replace("<head>", f"<head>{base}"), question, tmp_path, width=width)
        assert wide == [], name


def first_pages(site: Path, directory: Path, questions: list[str]) -> dict[str, list[str]]:
    """Ask the theme's own search, run by Chromium. Returns the pages for each question, the best
    first."""
    if reason := browser.missing():
        pytest.skip(reason)
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    script = worker.read_text("utf-8").replace("</script", r"<\/script")
    data = json.dumps(index).replace("</", r"<\/")
    page = f"""<body><script>
        const answers = [];
        window.postMessage = message => {{
            answers.push(message);
            if (message.type == 1) questions.forEach(words => send({{type: 2, data: words}}));
        }};
        const questions = {json.dumps(questions)};
        const send = data => dispatchEvent(new MessageEvent("message", {{data}}));
        </script><script>{script}</script>
        <script>
        const index = {data};
        send({{type: 0, data: {{...index, options: {{suggest: false}}}}}});
        </script>"""
    question = """answers.filter(message => message.type == 3).map(message =>
        message.data.items.map(sections => sections[0].location.split("#")[0]))"""
    answers = browser.ask(page, question, directory)
    assert len(answers) == len(questions) and all(answers)
    return dict(zip(questions, answers, strict=True))


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://code.example.org/data/acidsql.git", REPOSITORY),
        ("https://ann:secret@code.example.org/data/acidsql", REPOSITORY),
        ("git@code.example.org:data/acidsql.git", REPOSITORY),
        ("ssh://git@code.example.org/data/acidsql.git", REPOSITORY),
        ("/srv/git/acidsql", None),
        ("", None),
    ],
)
def test_the_repository_is_the_page_of_the_remote(remote, page):
    assert hooks.web_page_of(remote) == page
