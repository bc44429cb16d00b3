"""A wheel and an sdist in empty environments, and the first lines of the guide against a demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY, Demo

pytest.importorskip("build")
pytestmark = pytest.mark.demo
PACKAGE = Path(__file__).resolve().parents[1]
GUIDE = REPOSITORY / "docs" / "python.md"


def run(*command: str | Path, **environment: str) -> str:
    """The output of a program. A failure shows what it wrote."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def blocks(language: str) -> list[str]:
    """The code of the guide in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--outdir", folder, PACKAGE)
    return sorted(folder.iterdir())


@pytest.mark.parametrize("ending", [".whl", ".tar.gz"])
def test_five_lines_give_a_frame_when_only_the_package_is_installed(
    ending: str, built: list[Path], demo: Demo, tmp_path: Path
) -> None:
    (package,) = [one for one in built if one.name.endswith(ending)]
    python = tmp_path / "bin" / "python"
    run(sys.executable, "-m", "venv", tmp_path)
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{package}[polars]")
    lines = blocks("python")[0]
    assert len([line for line in lines.splitlines() if line.strip()]) == 5
    printed = run(python, "-c", lines, ODDSWIRE_URL=demo.url, ODDSWIRE_KEY=demo.key)
    assert "decimal[38" in printed
    assert re.search(r"shape: \([1-9][\d_]*, 11\)", printed), printed
    packages = run(python, "-m", "pip", "list", "--format=freeze")
    assert "pydantic" not in packages
    assert "pandas" not in packages


def test_the_package_has_its_types(built: list[Path]) -> None:
    import zipfile

    (wheel,) = [one for one in built if one.suffix == ".whl"]
    names = zipfile.ZipFile(wheel).namelist()
    assert "oddswire/py.typed" in names
    assert not [one for one in names if one.startswith(("tests", "scripts"))]


def test_every_block_of_the_guide_runs(demo: Demo) -> None:
    code = "\n".join(blocks("python"))
    printed = run(sys.executable, "-W", "error", "-c", code, ODDSWIRE_URL=demo.url, ODDSWIRE_KEY=demo.key)
    assert re.search(r"^0x[0-9a-f]+_float$", printed, re.MULTILINE), printed
