"""The documentation's pictures show what acidsql does today, and can be read."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pages import DOCS, README, pages

sys.path.append(str(DOCS / "generator" / "pictures"))
import draw
import record
import svg

FACTS = json.loads(draw.FACTS.read_text("utf-8"))
LARGEST = 60_000  # bytes
# Pictures whose number of lines depends on the speed of the machine.
OF_TIME = {"lag"}


def shown_texts(picture: str) -> list[str]:
    """All lines of text of a picture, with 0 for each number, one blank for several, and one line
    for several: the columns of a table are as wide as the numbers in them."""
    root = ET.fromstring(picture)
    texts = ("".join(element.itertext()) for element in root.iter(f"{{{SVG}}}text"))
    without_numbers = (re.sub(r"\d[\d,.]*", "0", text) for text in texts)
    return [re.sub(r"([\s─━])\1*", r"\1", text).strip() for text in without_numbers]


SVG = "http://www.w3.org/2000/svg"


def assert_same_words(name: str, facts: object) -> None:
    """Compare a picture of these facts with the one in the documentation."""
    today = sorted(shown_texts(draw.DRAWERS[name](facts)))
    shown = sorted(shown_texts((draw.PICTURES / f"{name}.svg").read_text("utf-8")))
    if name in OF_TIME:
        today, shown = sorted(set(today)), sorted(set(shown))
    assert today == shown, "make pictures draws them anew"


@pytest.mark.parametrize("name", draw.DRAWERS)
def test_a_picture_is_that_of_its_facts(name):
    picture = (draw.PICTURES / f"{name}.svg").read_text("utf-8")
    assert picture == draw.DRAWERS[name](FACTS[name]), "make pictures draws them anew"
    assert len(picture.encode()) < LARGEST
    assert not re.search(r"href=|src=|url\((?!#)|@import", picture), "a picture fetches nothing"


def test_each_picture_is_in_a_page_and_has_words_for_those_who_cannot_see_it():
    shown = set()
    for page in pages():
        for alt, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text("utf-8")):
            assert len(alt.split()) >= 5, f"{page.name}: {target} needs a text"
            shown.add((page.parent / target).resolve())
    assert shown == set(draw.PICTURES.glob("*.svg"))
    assert re.search(r"^!\[", README.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_texts_have_contrast_on_light_and_on_dark_pages(scheme):
    def brightness(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    colours = {name: pair[scheme] for name, pair in svg.COLOURS.items()}
    for ground in ("page", "panel"):
        for name in colours.keys() - {"page", "panel", "rule"}:
            pair = sorted(brightness(colours[one]) for one in (ground, name))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, (name, ground)


@pytest.mark.slow
def test_top_looks_like_its_picture():
    # The path is in the first line of the screen, where a long one would take two lines.
    with tempfile.TemporaryDirectory(prefix="acidsql-") as directory:
        assert_same_words("top", record.record_top(Path(directory)))


@pytest.mark.rotating(4)
@pytest.mark.parametrize("name", sorted(draw.DRAWERS.keys() - {"top", "shell"}))
def test_statements_look_like_their_picture(spark, name):
    assert_same_words(name, record.record(spark, name, stream_s=14))


@pytest.mark.rotating(4)
@pytest.mark.slow
def test_the_shell_looks_like_its_picture(java_home, tmp_path: Path):
    assert_same_words("shell", record.record_shell(tmp_path))
