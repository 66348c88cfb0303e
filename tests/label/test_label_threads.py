"""One labelling in several threads: calls take turns, and the journal is what it would be of one."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Thread

import pytest
from label_jobs import small_job

from superarm.errors import FeedbackError


def test_people_in_threads_answer_each_row_once(tmp_path: Path) -> None:
    job, rows, errors = small_job(journal=tmp_path / "j.db"), list[int](), list[BaseException]()

    def work(by: str) -> None:
        try:
            while (question := job.ask(by)) is not None:
                job.answer(question, label=job.label_names[question.row % 3], by=by)
                rows.append(question.row)
                assert job.progress().clicks <= 40
                job.results()
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [Thread(target=work, args=(f"p{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors, errors
    assert sorted(rows) == list(range(40))
    told = job.progress(), job.results()
    job.close()
    with small_job(journal=tmp_path / "j.db") as again:
        assert (again.progress(), again.results()) == told


def test_who_replies_to_a_question_of_the_last_start_is_told_so(tmp_path: Path) -> None:
    with small_job(journal=tmp_path / "j.db") as job:
        question = job.ask("ann")
    with (
        small_job(journal=tmp_path / "j.db") as job,
        pytest.raises(FeedbackError, match="did not count: its question was not asked since") as error,
    ):
        job.answer(question.id, label="a", by="ann")
    assert question.id not in str(error.value)
