"""One idea, one word (docs/glossary.md): names and phrases that have gone do not come back."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "src" / "superarm").rglob("*.py"))

# a name that has gone -> the one to take
NAMES = {
    "AfterCommit": "a function, which is called after the commit",
    "Again": "Replay",
    "AnnotatorErrorRates": "PersonErrorRates",
    "AtWork": "PolicyRunner",
    "BEND_AT": "CLIP_START",
    "BEND_LIMIT": "CLIP_LIMIT",
    "Behaviour": "UserBehaviour",
    "Calibration": "ThresholdCalibration, or ExpectationCalibrator",
    "DecimalMark": "shown_mark",
    "DecisionColumns": "DecisionBlock",
    "Deposed": "there is no lease any more",
    "Description": "Unquoted",
    "Desk": "RequestHandler",
    "Entry": "DecisionRecord",
    "ExploringLearner": "AnyRuleLearner",
    "GreedyKernel": "RuleKernel",
    "FrameTable": "memory_table",
    "FeatureReader": "NamedFeatures or UnnamedFeatures",
    "Guard": "ConnectionTracker",
    "Head": "LastEvent",
    "InputSchema": "LearnerInputs",
    "HitRateEstimate": "TopSetEstimate",
    "Held": "a noun that says what is held",
    "JournalDown": "JournalUnavailable",
    "JournalForeign": "JournalMismatch",
    "JournalHeld": "JournalLocked",
    "Kept": "DecisionRecord",
    "Known": "DecisionStatus",
    "LearnerTraits": "the keywords of Cover.make_kernel",
    "Ledger": "AnsweredRounds",
    "Lift": "RandomFeatures",
    "ModelMissing": "MissingModel",
    "Odds": "LogBatch.propensity",
    "Notices": "Warnings",
    "Office": "claim",
    "OnProgress": "Progress, or Tick",
    "Ordered": "Projector",
    "OutcomeItem": "OutcomeRequest",
    "Pace": "SparseStepSizes",
    "Place": "DecisionStatus",
    "PolicyWeights": "WeightedRows",
    "Propensities": "LogBatch.propensity",
    "Record": "LoggedDecision",
    "Refused": "InvalidInput",
    "Said": "Answer",
    "ServedModel": "JournalFollower",
    "StagedEvent": "DecisionRecord",
    "StoredUpdates": "learn_outcome",
    "Survey": "LogSummary",
    "TiedSets": "Mixture, with ties=",
    "Told": "LastAnswer",
    "TrialCore": "ProvisionalCore",
    "Turns": "CommitQueue",
    "UpdateBatch": "learn_outcome",
    "UNREADABLE": "READ_ERRORS",
    "Verdict": "PolicyResult",
    "Walk": "Verifier",
    "Watching": "Status",
    "Width": "NFeatures",
    "WithVectors": "with_matrix",
    "WrongLabels": "ErrorEstimator",
    "LearnerBase": "Learner",
    "accepted_decisions": "learns_from",
    "absorb": "update_stats",
    "chips": "label_chips",
    "class_codes": "class_indices",
    "command_names": "variants",
    "complete_signature": "full_signature",
    "could_have_encoded": "accepts_layout",
    "eligible_numbers": "eligible_indices",
    "explore_rule": "Core.rule; its compiled part is Core.kernel",
    "foretell": "predict",
    "go_back": "rollback",
    "group_names": "group_name",
    "has_widgets": "label_here",
    "hear": "listen, or on_feedback",
    "hit_intervals": "drawn_intervals: a hit is an answer",
    "import_user_classes": "import_user_code",
    "inclusion_given_top": "mean_over_ties",
    "is_user_class": "names_user_code",
    "logged_odds": "LogBatch.propensity",
    "logged_propensities": "LogBatch.propensity",
    "learns_from_given": "learns_from",
    "learn_answer": "learn_outcome",
    "learn_batch": "update_many of native/loops.pyx",
    "log_damaged": "unreadable_error",
    "make_kernel_for_learner": "make_kernel",
    "mark_answered": "the core's update does it",
    "need": "require_extra",
    "notices": "warnings",
    "on_progress": "progress",
    "pending_error": "Core.raise_pending",
    "pooled": "pool_coverage",
    "progress_ticker": "progress_bar",
    "report_problem": "warn_of_promise",
    "raise_error": "Core.raise_pending",
    "respelt": "relabel",
    "retire": "disable",
    "rows_seen": "n_rows_seen",
    "scrub": "purge_erased",
    "served_model": "follower",
    "set_belief": "set_error",
    "single_label": "shows_one_label",
    "stand": "claim",
    "strangers": "unauthenticated",
    "take_error": "Core.raise_pending",
    "take_snapshot": "Projector.snapshot",
    "teach": "learn",
    "undo_on_failure": "rollback_inputs",
    "use_coverage": "checked_target, which is passed on",
    "untaught_probabilities": "out_of_fold_probabilities",
    "wrote": "is_own_record",
}
# names that say nothing
VAGUE = {"found", "made", "told", "said", "odds", "meant", "spelt"}
# the same in what people read
PHRASES = {
    "rows speak of": "an effective sample size of",
    "equal ones": "effective sample size",
    "label numbers": "label indices",
    "numbers of the labels": "label indices",
    "nothing speaks against": "sound",
}


def identifiers(path: Path) -> set[str]:
    """Every name that a file defines or uses."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    values = (getattr(node, field, None) for node in nodes for field in ("id", "name", "attr", "arg"))
    return {value for value in values if isinstance(value, str)}


def test_no_file_uses_a_name_that_has_gone() -> None:
    used = {path: identifiers(path) & NAMES.keys() for path in SOURCES}
    wrong = [
        f"{path.relative_to(ROOT)}: {name} (say {NAMES[name]})"
        for path, names in used.items()
        for name in names
    ]
    assert not wrong, "\n".join(wrong)


def words(path: Path) -> set[str]:
    """Every word of a file of Python or Cython, without its strings and comments."""
    code = re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    code = re.sub(r'"[^"\n]*"|\'[^\'\n]*\'|#.*', "", code)
    return set(re.findall(r"\b[a-z_]\w*", code))


def test_names_say_what_a_thing_is() -> None:
    files = [*SOURCES, *sorted((ROOT / "src" / "superarm").rglob("*.p[yx][xd]"))]
    files += sorted((ROOT / "benchmarks").glob("*.py"))
    vague = {str(path.relative_to(ROOT)): words(path) & VAGUE for path in files}
    assert {name: used for name, used in vague.items() if used} == {}


@pytest.mark.parametrize("phrase", PHRASES)
def test_no_page_says_it_in_the_old_words(phrase: str) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *SOURCES]
    wrong = [str(page.relative_to(ROOT)) for page in pages if phrase in page.read_text(encoding="utf-8")]
    assert not wrong, f"say {PHRASES[phrase]!r}: {', '.join(wrong)}"


def missing_things(code: str) -> list[int]:
    """Lines that say by `must` that something is missing: "must be there", "got 'nothing'"."""

    def text(node: ast.expr) -> str:
        if isinstance(node, ast.JoinedStr) and node.values:
            node = node.values[0]
        return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""

    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    return [
        call.lineno
        for call in calls
        if getattr(call.func, "attr", getattr(call.func, "id", "")) == "must"
        and any(re.match(r"there\b|(nothing|none)$", text(argument)) for argument in call.args)
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_missing_is_called_missing(path: Path) -> None:
    lines = missing_things(path.read_text(encoding="utf-8"))
    assert not lines, f"say that it is missing, or 'no such file': lines {lines}"


def test_it_would_be_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("class Desk:\n    def f(self, respelt=1):\n        return self.go_back()\n")
    assert identifiers(file) & NAMES.keys() == {"Desk", "respelt", "go_back"}
    assert missing_things(
        'raise E.must("x", "f", "there already", p)\n'
        'raise E.must("x", "f", f"there {p}", p)\n'
        'must("rows", name, "at least one", "none")\n'
        'must("rows", name, "one of none, all", "nothing here")\n'
    ) == [1, 2, 3]
