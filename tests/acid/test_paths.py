"""The rules of paths, compared with ``os.path`` on real directories with links, and with
``pathlib``."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from acidsql.acid import paths
from acidsql.acid.layout import is_hidden, parse_directory
from acidsql.storage.files.local import real_location, real_locations

PARTS = st.lists(st.sampled_from(["a", "b", "ab", "..", ".", "", "link", "x.y"]), max_size=6)
TEXTS = st.text(max_size=12) | st.text(st.sampled_from("aA1_.=/: %\n\x00-\\"), max_size=12)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories a and b, which have directories a and b themselves, each with a link to b/a."""
    top = tmp_path_factory.mktemp("paths")
    for one in ("a/a", "a/b", "b/a", "b/b"):
        (top / one).mkdir(parents=True)
    for place in ("", "a", "b", "a/b"):
        (top / place / "link").symlink_to(top / "b" / "a")
    return top


@example([], ["ab", "..", "link"], "")  # there is no directory ab
@given(PARTS, PARTS, st.sampled_from(["", "file:", "file://", "FILE://localhost"]))
def test_two_paths_are_one_place_where_the_file_system_says_so(root, one, other, scheme):
    first, second = f"{root}/{'/'.join(one)}", f"{root}/{'/'.join(other)}"
    assert paths.is_same(real_location(scheme + first), real_location(second)) == (
        os.path.realpath(first) == os.path.realpath(second)
    )
    if os.path.exists(first) and os.path.exists(second):
        assert paths.is_same(
            real_location(scheme + first), real_location(second)
        ) == os.path.samefile(first, second)
    assert list(real_locations([first, scheme + second])) == [
        real_location(first),
        real_location(scheme + second),
    ]


@given(PARTS, PARTS)
def test_a_path_lies_in_a_directory_where_pathlib_says_so(one, other):
    inner, outer = (real_location("/nowhere/" + "/".join(parts)) for parts in (one, other))
    is_within = PurePosixPath(inner).is_relative_to(outer)
    assert paths.is_within(inner, outer) == is_within
    assert paths.is_within(f"file:{inner}/", f"//{outer}") == is_within
    assert paths.overlap(inner, outer) == (is_within or PurePosixPath(outer).is_relative_to(inner))


@pytest.mark.parametrize(
    ("one", "other", "same", "overlap"),
    [
        ("hdfs://a:8020/x", "hdfs://A/x/", True, True),
        ("hdfs://a/x", "HDFS://a//y/../x", True, True),
        ("hdfs://a/x", "hdfs://b/x", False, False),
        ("hdfs://a/x", "hdfs:///x", False, True),  # the default file system may be any
        ("hdfs:/x", "hdfs:///x", True, True),
        ("hdfs://a/x", "/x", False, False),
        ("hdfs://a/x", "hdfs://a/xx", False, False),
        ("hdfs://a/", "hdfs://a/x", False, True),
        ("file://other/x", "/x", False, True),
        ("/a:b", "/a:b/", True, True),
    ],
)
def test_paths_of_several_file_systems(one, other, same, overlap):
    assert (paths.is_same(one, other), paths.overlap(one, other)) == (same, overlap)
    assert paths.overlap(other, one) == overlap


@given(TEXTS)
def test_a_normal_path_is_normal_and_means_the_same(text):
    for head in ("/x", "file:/x", "hdfs://h:1/x"):
        once = paths.normal(head + text)
        assert paths.normal(once) == once
        assert paths.is_same(once, head + text)


@settings(max_examples=300)
@given(TEXTS, st.sampled_from(["", "/", "file:", "file:///", "hdfs://h"]))
def test_a_place_is_a_path_that_can_be_made_or_is_refused(root, text, head):
    location = head + text
    if paths.why_no_place(location) is None:
        path = paths.normal(location)
        assert re.fullmatch(r"(file:|hdfs://h[^/]*|[a-zA-Z][^/]*:)?(/[^/\x00-\x1f]+)+", path), path
        assert ".." not in path.split("/")


@given(TEXTS | st.from_regex(r"\A(_|\.|base_|delta_|table_)*[0-9a-z_]*\Z"))
def test_a_name_makes_one_visible_directory_or_is_refused(name):
    if not paths.is_name(name):
        assert not re.fullmatch(r"[a-zA-Z0-9_]{1,128}", name)
        return
    directory = paths.directory_name(name)
    assert re.fullmatch(r"\w+", directory) and not is_hidden(directory)
    assert parse_directory(directory) is None


@pytest.mark.parametrize(
    ("path", "url"),  # as Spark 4 shows these files
    [
        ("/p/é ü#y?z", "file:///p/é%20ü%23y%3Fz"),
        ("/100%/a%20b", "file:///100%25/a%2520b"),
        ("/q\"'<>|^`{}[]\\", "file:///q%22'%3C%3E%7C%5E%60%7B%7D%5B%5D%5C"),
        ("/a+b&c=d;e,f~!@$()*:-._", "file:///a+b&c=d;e,f~!@$()*:-._"),
        (
            "/nb\u00a0sp/\u2028ls/tab\t/e\u0301\U0001f600",
            "file:///nb%C2%A0sp/%E2%80%A8ls/tab%09/e\u0301\U0001f600",
        ),
        ("file:/a b", "file:///a%20b"),
        ("hdfs://name:8020/a b/[c]", "hdfs://name:8020/a%20b/%5Bc%5D"),
    ],
)
def test_the_url_of_a_file_has_javas_escapes(path, url):
    assert paths.url_of(path) == url


@pytest.mark.parametrize(
    ("path", "directory"),
    [
        ("/a/b", "/a"),
        ("/a", "/"),
        ("file:/a", "file:/"),
        ("hdfs:/a", "hdfs:/"),
        ("hdfs://h:1/a", "hdfs://h:1"),
        ("hdfs://h:1/a/b", "hdfs://h:1/a"),
    ],
)
def test_the_directory_above_is_never_an_empty_text(path, directory):
    assert paths.directory_of(path) == directory
