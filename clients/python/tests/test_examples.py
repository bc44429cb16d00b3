"""The notebooks of `examples` run from their first cell to the last one on a demo, and write what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Demo
from eventually import eventually

pytest.importorskip("matplotlib")
jupytext = pytest.importorskip("jupytext")

FOLDER = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = ("calibration.py", "alert_history.py")
PNG = b"\x89PNG\r\n\x1a\n"


def run(name: str, demo: Demo, out: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"ODDSWIRE_URL": demo.url, "ODDSWIRE_KEY": demo.key, "OUT": str(out), "MPLBACKEND": "Agg"}
    return subprocess.run(
        [sys.executable, "-W", "error", FOLDER / name],
        env={**os.environ, **variables, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=out,
    )


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_has_cells_with_text_and_code_and_no_output(name: str) -> None:
    notebook: Any = jupytext.read(FOLDER / name)
    assert notebook.metadata["jupytext"]["text_representation"]["format_name"] == "percent"
    assert {cell.cell_type for cell in notebook.cells} == {"markdown", "code"}
    assert not [cell for cell in notebook.cells if cell.get("outputs")]


@pytest.mark.demo
def test_the_calibration_has_a_picture_and_a_report(demo: Demo, tmp_path: Path) -> None:
    # The first markets of a new demo have no trades until their history is read.
    done = eventually(lambda: run("calibration.py", demo, tmp_path), lambda one: one.returncode == 0, seconds=180)
    report = (tmp_path / "calibration.md").read_text()
    assert report in done.stdout
    markets = re.search(r"^(\d+) forecasts of (\d+) markets\. Brier score 0\.\d{3}", report, re.MULTILINE)
    assert markets is not None
    assert int(markets[2]) > 0
    by_venue = report.partition("| Venue |")[2].partition("\n\n")[0]
    assert sum(int(one) for one in re.findall(r"^\| \w+ \| (\d+) \|", by_venue, re.MULTILINE)) == int(markets[2])
    assert (tmp_path / "calibration.png").read_bytes().startswith(PNG)


@pytest.mark.demo
def test_a_backtest_finds_the_firings_of_its_live_alert(demo: Demo, tmp_path: Path) -> None:
    done = run("alert_history.py", demo, tmp_path, LIVE_SECONDS="30")
    assert done.returncode == 0, done.stderr
    assert re.search(r"live (\d+), backtest \1, only live 0, only backtest 0$", done.stdout, re.MULTILINE), done.stdout
    assert (tmp_path / "alert_history.png").read_bytes().startswith(PNG)
