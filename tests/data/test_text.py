"""Texts as sparse rows: words, pairs and parts of words, hashed in compiled code."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.data.columns import Columns
from superarm.native.text import hash_texts

WIDTH = 2**30  # so wide that nothing collides


def features(text: str) -> list[str]:
    """What a text of small letters is made of, slowly."""
    words = re.findall(r"[a-z0-9]+(?:'[a-z0-9]+)*", text)
    ends = [f" {word} " for word in words if len(word) > 2]
    parts = [f"#{word[i : i + 4]}" for word in ends for i in range(len(word) - 3)]
    return [*words, *(f"{a} {b}" for a, b in pairwise(words)), *parts]


@given(st.lists(st.text("abc12' .", max_size=40), min_size=1, max_size=6))
def test_as_many_places_as_there_are_words_pairs_and_parts(texts: list[str]) -> None:
    indices, values, starts = hash_texts([(7, False, texts)], len(texts), WIDTH)
    for i, text in enumerate(texts):
        own = slice(starts[i], starts[i + 1])
        expected = features(text)
        assert len(indices[own]) == len(set(expected)), text
        assert sorted(np.round(values[own] ** 2).astype(int)) == sorted(map(expected.count, set(expected)))
        assert (np.diff(indices[own]) > 0).all()


@given(st.lists(st.one_of(st.none(), st.text(max_size=60)), max_size=5), st.sampled_from([16, 1024, 65_536]))
def test_many_rows_are_their_rows(texts: list[Any], width: int) -> None:
    columns = [(7, False, texts), (9, True, texts)]
    indices, values, starts = hash_texts(columns, len(texts), width)
    for i, text in enumerate(texts):
        one = hash_texts([(7, False, [text]), (9, True, [text])], 1, width)
        assert np.array_equal(indices[starts[i] : starts[i + 1]], one[0])
        assert np.array_equal(values[starts[i] : starts[i + 1]], one[1])


def places(text: str) -> set[int]:
    columns = Columns([{"name": "t", "kind": "text"}], text_width=WIDTH)
    return set(columns.encode_row({"t": text}, "this").indices.tolist())


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("Card NOT working", "card not working"),
        ("Straße", "STRASSE"),
        ("caf\u00e9", "cafe\u0301"),  # one letter, or a letter and a mark
        ("\uff21\uff22\uff23", "abc"),  # full width
        ("card... not?! working", "card not working"),
    ],
)
def test_the_same_text(one: str, two: str) -> None:
    assert places(one) == places(two)


def test_words_of_all_scripts() -> None:
    assert places("") == places("...") == set()
    assert len(places("我的卡")) == 5  # three characters, two pairs
    assert places("我的") < places("我的卡")
    assert len(places("👍👎")) == 3
    assert places("हिन्दी") != places("हिन्द")
    assert len(places("don't")) == 5  # one word, and parts of it
    assert len(places("a b")) == 3
    assert len(places("cat")) == 3  # the word, and two parts with its ends


def test_columns_have_places_of_their_own() -> None:
    columns = Columns([{"name": n, "kind": "text"} for n in "ab"], text_width=WIDTH)
    one, two = columns.encode_row({"a": "card"}, "this"), columns.encode_row({"b": "card"}, "this")
    assert not set(one.indices) & set(two.indices)


def test_a_megabyte() -> None:
    long = places("card not working " * 60_000)
    assert long == places("card not working card")


def test_the_width_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="a power of two, got 1000"):
        hash_texts([], 1, 1000)
