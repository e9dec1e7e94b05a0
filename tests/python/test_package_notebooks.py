"""The notebooks run from their first cell to their last."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, program, monkeypatch):
    monkeypatch.setenv("SCHEDLAB", str(program))
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(path.parent)}}).execute()
    assert any(output["output_type"] == "execute_result" for cell in notebook.cells for output in cell.get("outputs", []))


def test_there_are_four():
    assert len(NOTEBOOKS) == 4
