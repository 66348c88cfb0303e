"""What columns were inferred as, in words; and what may have been taken for something else, a sentence each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from superarm.data.cells import describe_ambiguous, is_missing
from superarm.data.column import DATES, NUMBERS, TEXT, VECTOR, WORDS, ColumnKinds
from superarm.data.inference import ENOUGH_ROWS, LIKELY_ID, MAJORITY, OF_NO_KIND, ColumnProfile
from superarm.data.labels import Label


def describe(profile: ColumnProfile) -> str:
    """Return what a column is taken as, and why."""
    kind, n_texts = profile.kind, profile.n_by_kind[WORDS]
    n_missing, n_non_numeric = profile.n_missing, profile.n_non_numeric
    in_most = " in most cells" if profile.is_mostly_words else ""
    parts = [
        kind if kind != VECTOR else f"vectors of {max(profile.vector_lengths):,} numbers",
        "as asked for" if profile.is_declared else "",
        f"in {profile.unit}" if profile.unit and kind == NUMBERS else "",
        _describe_marks(profile) if kind == NUMBERS else "",
        _describe_order(profile) if kind == DATES else "",
        f"{profile.n_words / n_texts:.0f} words each" if kind == TEXT and n_texts else "",
        f"{n_non_numeric:,} words{in_most}" if n_non_numeric else "",
        f"{n_missing:,} missing" if n_missing else "",
    ]
    return ", ".join(filter(None, parts))


def _describe_marks(profile: ColumnProfile) -> str:
    """Return what stands before decimals, where that is not always a point."""
    if len(profile.marks) > 1:
        return "with decimal commas and points"
    return "with a decimal comma" if profile.decimal == "," else ""


def _describe_order(profile: ColumnProfile) -> str:
    """Return what stands first in dates with slashes, and how sure that is; empty if no date has slashes."""
    first, second = ("day", "month") if profile.day_first else ("month", "day")
    if profile.has_ambiguous_dates:
        return f"{first} first, which no cell tells"
    if profile.date_orders[second]:
        return f"{first} first, but for {profile.date_orders[second]:,}"
    return f"{first} first" if profile.date_orders[first] else ""


def inference_warnings(
    profiles: Mapping[str, ColumnProfile], features: list[ColumnProfile], left_out: Mapping[str, str]
) -> list[str]:
    """Return what in a table may have been taken for something else, and what to do about it."""
    likely_ids = [name for name, reason in left_out.items() if reason == LIKELY_ID]
    mostly_words = [profile.name for profile in features if profile.is_mostly_words]
    unordered = [
        profile.name for profile in features if profile.kind == DATES and profile.has_ambiguous_dates
    ]
    warnings = [
        describe_ambiguous(ambiguous[0], profile.name, len(ambiguous), profile.decimal, profile.marks)
        for profile in features
        if profile.kind == NUMBERS and (ambiguous := profile.ambiguous_numbers)
    ]
    warnings += [
        f"{profile.name} holds numbers with different units ({profile.list_units()}): written in one unit, "
        f"{'or asked for as numbers, ' if len(profile.units) == 2 and 'none' in profile.units else ''}"
        "they are read as numbers"
        for profile in [*features, *(profiles[name] for name in likely_ids)]
        if profile.has_several_units and (profile.kind != NUMBERS or profile.is_mostly_words)
    ]
    if likely_ids:
        warnings.append(
            f"taken for ids: {', '.join(likely_ids)} (declared as text or words, they are features)"
        )
    if mostly_words:
        warnings.append(
            f"asked for as numbers or dates, but most cells hold words: {', '.join(mostly_words)}"
        )
    if unordered:
        remedy = f'set "day_first": false for {", ".join(unordered)} in a columns file'
        warnings.append(
            f"1/2/2024 is read as 1 February, since no cell shows the order; for 2 January {remedy}"
        )
    return warnings


def left_out_warnings(left_out: Mapping[str, str]) -> dict[str, str]:
    """Return a sentence for each column that is left out for what it holds: likely ids, and what cannot be read."""
    taken_for_id = (
        f"is taken for {LIKELY_ID}; it is left out, unless declared (learner.use_columns, or columns=)"
    )
    return {
        name: f"column {name!r} {taken_for_id if why == LIKELY_ID else f'cannot be read ({why}); it is left out'}"
        for name, why in left_out.items()
        if why == LIKELY_ID or why.startswith(OF_NO_KIND)
    }


def leak_warnings(
    kinds: ColumnKinds, cells: Mapping[str, Iterable[Any]], labels: Iterable[Label]
) -> list[str]:
    """Return a sentence for each feature that may say the answer: its words are nearly all names of labels."""
    names = {str(label) for label in labels}
    warnings = []
    for column in (name for name, kind in kinds.items() if kind == WORDS):
        words = [str(cell).strip() for cell in cells.get(column, ()) if not is_missing(cell)]
        label_names = [word for word in words if word in names]
        is_likely = len(words) >= ENOUGH_ROWS and len(label_names) >= MAJORITY * len(words)
        if is_likely and len(set(label_names)) > 1:  # one may be a name by chance
            warnings.append(
                f"column {column} holds names of labels: does it say the answer? --leave-out {column}"
            )
    return warnings
