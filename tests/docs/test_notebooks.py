"""The notebooks run anew without an error, and keep their outputs, small and without this machine in them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

for part in ("nbclient", "ipykernel", "altair", "sklearn", "pandas"):
    pytest.importorskip(part, reason=f"the notebooks need {part}: pip install 'superarm[plots,sklearn,dev]'")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import nbformat  # noqa: E402
from nbclient import NotebookClient  # noqa: E402
from notebooks import NAMES, WIDGET, executed  # noqa: E402

MOST = 310_000  # bytes of a file
SHOWN = {  # what each notebook is to show: kinds of output
    "researcher": {"image/png": 3, "text/html": 5},
    "practitioner": {"image/png": 1, "text/html": 5},
    "data_scientist": {"image/png": 1, "text/html": 4},
}


def kinds(book) -> dict[str, int]:
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert all(out.output_type != "error" for out in outputs)
    data = [kind for out in outputs for kind in out.get("data", {})]
    return {kind: data.count(kind) for kind in ("image/png", "text/html")}


def test_each_user_has_one():
    assert {path.stem for path in (ROOT / "examples").glob("*.ipynb")} == set(NAMES) == set(SHOWN)


@pytest.mark.parametrize("name", NAMES)
def test_outputs_are_kept(name):
    path = ROOT / "examples" / f"{name}.ipynb"
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST
    for place in (r"/work/", r"/root/", r"/home/", r"/tmp/", r"Traceback", r"Warning"):
        assert not re.search(place, text), place
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    found = kinds(book)
    assert all(found[kind] >= least for kind, least in SHOWN[name].items()), found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NAMES)
def test_it_runs_anew(name, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    path = ROOT / "examples" / f"{name}.ipynb"
    assert kinds(executed(path)) == kinds(nbformat.read(path, as_version=4))


@pytest.mark.slow
def test_a_notebook_draws_progress_in_its_cell(monkeypatch):
    pytest.importorskip("ipywidgets", reason="ipywidgets is not installed: pip install -e '.[dev]'")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    source = "from superarm._progress import progress_bar\nwith progress_bar(9, 'rows') as tick: tick(3)"
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(book, timeout=60, kernel_name="python3").execute()
    (shown, *_) = book.cells[0].outputs
    assert WIDGET in shown.data
