"""Install the archives of dist/ into clean environments, and try what each of them is for.

`make smoke` runs it: minutes, since pip fetches what each environment needs. Nothing of the clone
is seen: commands run in an empty folder, and Python ignores its environment variables.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIP = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
TABLE = ";Anna;Björn;Cleo\nAnna;;2,5;-1\nBjörn;2,5;;1,5\nCleo;-1;1,5;\n"
"""As a German Excel writes it; the best is all three together, worth 3."""


class Environment:
    """A new environment with one archive of dist/ in it."""

    def __init__(self, folder: Path, archive: Path, extra: str) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
        target = f"{archive}[{extra}]" if extra else str(archive)
        constraints = ROOT / "constraints.txt"
        python = folder / "env" / "bin" / "python"
        subprocess.run([python, *PIP, "-c", constraints, target], check=True, cwd=folder)
        (folder / "team.csv").write_bytes(TABLE.encode("cp1252"))

    def typed(self, line: str, *, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command, which has to end with an exit code."""
        python = self.folder / "env" / "bin" / "python"
        command = [python, "-I", self.folder / "env" / "bin" / "coalitions", *line.split()]
        ran = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        if ran.returncode != code:
            sys.exit(f"coalitions {line}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
        return ran


def base(env: Environment) -> None:
    """Solve a spreadsheet, prove it, share it; say what is missing for the rest."""
    env.typed("solve team.csv --output s.json --certificate c.json")
    assert (
        "the structure is optimal"
        in env.typed("verify team.csv s.json --certificate c.json").stdout
    )
    shares = json.loads(env.typed("shapley team.csv --json").stdout)
    assert "values" in shares, shares
    said = env.typed("run --rounds 1", code=2).stderr
    assert "'.[learners]'" in said, said
    said = env.typed("solve team.csv --solver highs", code=2).stderr
    assert "'.[ilp]'" in said, said


def ilp(env: Environment) -> None:
    """Find the same value by every optimiser."""
    for solver in ("auto", "cbc", "cp-sat", "highs"):
        found = json.loads(env.typed(f"solve team.csv --solver {solver} --json").stdout)
        assert (found["value"], found["optimal"]) == (3.0, True), found


def learners(env: Environment) -> None:
    """Train a small federation, and go on where it ended."""
    env.typed("run --algorithm pfedsv --rounds 1 --clients 2 --train-size 20 --out runs/one")
    result = json.loads((env.folder / "runs" / "one" / "result.json").read_text())
    assert result["rounds"] == 1, result
    env.typed("resume runs/one")


def main() -> None:
    """Try both archives, and the wheel with each extra."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    (source,) = (ROOT / "dist").glob("*.tar.gz")
    tries = [
        (source, "", base),
        (wheel, "", base),
        (wheel, "ilp", ilp),
        (wheel, "learners", learners),
    ]
    for archive, extra, check in tries:
        begun = time.monotonic()
        folder = Path(tempfile.mkdtemp(prefix="smoke-"))
        try:
            check(Environment(folder, archive, extra))
        finally:
            shutil.rmtree(folder)
        name = f"{archive.name} [{extra}]" if extra else archive.name
        sys.stdout.write(f"{name}: ok, {time.monotonic() - begun:.0f} s\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
