"""Every notebook runs, says what it has said when it was written, and is small."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient ipykernel")
pytest.importorskip("ipykernel")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")

NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e-?\d+)?")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "examples" / "notebooks").glob("*.ipynb"))


def executed(path, folder):
    """Return the notebook after a run by this interpreter, in an empty folder."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    class Own(AsyncKernelManager):
        """Starts a kernel by this interpreter, whatever is registered on the machine."""

        @property
        def kernel_spec(self):
            command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            return KernelSpec(argv=command, display_name="Python", language="python")

    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = []
    resources = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=250, kernel_manager_class=Own, resources=resources)
    client.execute()
    return notebook


def said(notebook):
    """Return the texts of all outputs, and the numbers in them; a picture is there or not."""
    texts = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {"text/plain": output.get("text", "")})
            picture = "picture" if "image/png" in data else None
            texts.append(picture or data.get("text/html", data["text/plain"]))
    whole = "\n".join(texts)
    return NUMBER.sub("#", whole), [float(number) for number in NUMBER.findall(whole)]


@pytest.mark.filterwarnings("ignore")  # of the machinery around kernels
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_says_what_it_shows(path, tmp_path):
    if path.stem == "federation":
        pytest.importorskip("torch", reason="torch is not installed: pip install .[learners]")
    texts, numbers = said(nbformat.read(path, as_version=4))
    assert "picture" in texts
    again, measured = said(executed(path, tmp_path))
    assert again == texts
    assert measured == pytest.approx(numbers, rel=0.02, abs=1e-3)  # last digits are the machine's
    assert path.stat().st_size < 300_000


def test_there_are_five():
    named = {path.stem for path in NOTEBOOKS}
    assert named == {"explain_a_model", "federation", "share_costs", "teams", "value_data"}
