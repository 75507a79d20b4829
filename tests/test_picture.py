"""The health of tables as a picture, which is read back as XML."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from xml.etree import ElementTree

from acidsql.api.picture import Picture, health_cells
from acidsql.statements.maintenance.health import Health

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*found):
    return ElementTree.fromstring(Picture(found)._repr_html_())


def part(name, **facts):
    return Health("d.t", name, 1, 0, **{"base_bytes": 0} | facts)


def bars(svg):
    """The widths of the bars' parts, by their line's first text."""
    return {
        group.find(f"{SVG}text").text: [float(one.get("width")) for one in group.iter(f"{SVG}rect")]
        for group in svg.iter(f"{SVG}g")
    }


def test_bars_are_as_long_as_their_bytes_and_the_largest_is_first():
    small = part("p=1", base_bytes=10, delta_bytes=30)
    large = part("p=2", base_bytes=50, delete_delta_bytes=20, obsolete_bytes=30)
    found = bars(drawn(small, large))
    assert list(found) == ["p=2", "p=1"]
    base, deletes, obsolete = found["p=2"]
    assert (deletes / base, obsolete / base) == (20 / 50, 30 / 50)
    assert [width / base for width in found["p=1"]] == [10 / 50, 30 / 50]


def test_names_are_escaped_and_long_ones_are_cut_but_told_whole():
    name = "p=<b>&\"'é" + "x" * 60
    svg = drawn(Health("d.t", name, None, None, problem="</svg>"))
    (shown,) = bars(svg)
    assert shown.startswith("p=<b>&\"'éx") and shown.endswith("…") and len(shown) < 40
    assert name in svg.find(f".//{SVG}title").text and name in svg.get("aria-label")


def test_after_twenty_bars_the_rest_is_a_number():
    svg = drawn(*(part(f"p={n}", base_bytes=1000 + n) for n in range(25)))
    assert list(bars(svg)) == [f"p={n}" for n in range(24, 4, -1)]
    texts = [one.text for one in svg.iter(f"{SVG}text")]
    assert texts[:4] == ["base", "delta", "delete delta", "obsolete"]
    assert texts[-1] == "and 5 more: 5.0 kB"
    bottom = max(float(one.get("y")) for one in svg.iter(f"{SVG}text"))
    assert bottom < float(svg.get("height"))


def test_nothing_is_drawn_of_no_partitions_and_of_no_bytes():
    assert bars(drawn()) == {} and str(Picture([])) == "no partitions"
    assert bars(drawn(part(""), Health("d.u"))) == {"d.t": [], "d.u": []}


def test_a_line_says_what_holds_old_files_and_what_comes_next():
    since = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    one = Health(
        "d.t", "", 1, 2, base_bytes=900, delta_bytes=100, deltas=1, files=2, obsolete_bytes=5,
        held_by="Transaction 7", held_since=since, next="minor", why="because",
    )  # fmt: skip
    assert str(Picture([one])) == (
        "d.t: 1 row, 2 deleted, 1.0 kB in 2 files · 1 delta, 10% of the bytes · "
        "5 B obsolete: Transaction 7, since 2026-01-02 03:04 UTC · next: minor: because"
    )
    elsewhere = Health(
        "d.t", held_by="x", held_since=since.astimezone(timezone(timedelta(hours=9)))
    )
    assert "x, since 2026-01-02 03:04 UTC" in health_cells(elsewhere)
    broken = Health("d.t", problem="no such directory")
    assert str(Picture([broken])).startswith("d.t: no such directory")
