"""The page on runs does what it says: its code runs, its study is one."""

import re
from pathlib import Path

import pytest

from modelodds.study import load_study

PAGE = Path(__file__).parents[1] / "docs" / "runs.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_code_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for code in blocks("python"):
        if "Workers(2)" not in code:  # spawned workers need a script of its own: tests/test_executors.py
            exec(compile(code.replace("ledger=", "progress=False, ledger="), str(PAGE), "exec"), names)
    assert (tmp_path / "run.db").exists() and (tmp_path / "flat.db").exists()
    assert "Stopped" in capsys.readouterr().out


def test_the_study_is_one(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(blocks("toml")[0], encoding="utf-8")
    assert [m.name for m in load_study(tmp_path / "study.toml").models] == ["narrow", "wide"]
