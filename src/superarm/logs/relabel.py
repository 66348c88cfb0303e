"""Labels of a log by their numbers or other names: 3, 3.0 and "3" are one label."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from superarm.data.labels import LabelVocabulary
from superarm.decisions.decision import Decision, Label
from superarm.decisions.record import Record
from superarm.errors import at_row
from superarm.explore import rules
from superarm.logs.log import UNIFORM
from superarm.logs.parsing import BadRow


def label_numbers(labels: LabelVocabulary, given: Iterable[Label], field: str, owner: str) -> list[int]:
    """Return the numbers of labels as a log spells them: 3, 3.0 and "3" are one label."""
    numbers = []
    for label in given:
        number = labels.index_of_text(label)
        if number is None:
            raise BadRow.must(field, owner, "known labels", label)
        numbers.append(number)
    return numbers


def relabel(record: Record, labels: LabelVocabulary, names: Sequence[Label]) -> Decision:
    """Return the decision of a row, with ``names[i]`` for the label of number i."""
    decision, where = record.decision, at_row("the log", record.row_number)

    def own(given: Iterable[Label], field: str = "labels") -> tuple[Label, ...]:
        return tuple(names[i] for i in label_numbers(labels, given, field, where))

    eligible = None if decision.eligible is None else own(decision.eligible, "eligible")
    top, rule = own(decision.top, "top"), decision.rule
    if rule is not None:
        if rule["name"] == "uniform" or (rule == UNIFORM and not top):
            # any top set gives this draw
            rule, top = UNIFORM, (eligible or tuple(names))[: decision.set_size]
        else:
            cls = rules().get(rule["name"])
            named = () if cls is None else cls.label_keys
            rule = {**rule, **{key: own(rule[key], "rule") for key in named if key in rule}}
    return Decision.from_parts(
        x=decision.x,
        sets=(own(decision.labels), own(decision.drawn), top),
        size=decision.set_size,
        eligible=eligible,
        n_labels=len(names),
        log_propensity=decision.log_propensity,
        rule=rule,
        learner=decision.learner,
    )
