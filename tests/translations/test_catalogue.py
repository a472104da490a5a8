"""The zh_Hans catalogue is complete, and what is compiled is what is written."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import polib
import pytest

ROOT = Path(__file__).parents[2]
CATALOGUE = ROOT / "reviewboard" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
PLACEHOLDERS = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")
#: The same in every language.
STATES = re.compile(r"\b(?:WAITING|LEASED|DONE|DEAD)\b")


@pytest.fixture(scope="module")
def written() -> polib.POFile:
    return polib.pofile(str(CATALOGUE))


def test_every_text_of_the_code_and_the_templates_is_in_the_catalogue(written: polib.POFile, tmp_path: Path) -> None:
    if shutil.which("xgettext") is None:
        if os.environ.get("CI"):
            pytest.fail("no xgettext on this machine")
        pytest.skip("no xgettext on this machine (Debian: apt-get install gettext)")
    for name in ("queue_core", "reviewboard", "templates"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [sys.executable, "-m", "django", "makemessages", "-l", "zh_Hans", "--no-location", "--no-obsolete"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "DJANGO_SETTINGS_MODULE": "reviewboard.settings"},
        check=True,
        capture_output=True,
        timeout=120,
    )
    extracted = polib.pofile(str(tmp_path / CATALOGUE.relative_to(ROOT)))

    missing = {_name(entry) for entry in extracted} - {_name(entry) for entry in written}

    assert missing == set()


def test_every_text_is_translated(written: polib.POFile) -> None:
    assert [entry.msgid for entry in written if not entry.translated() or entry.fuzzy] == []


def test_translations_keep_the_placeholders_and_the_names_of_states(written: polib.POFile) -> None:
    broken = [
        entry.msgid
        for entry in written
        for text in entry.msgstr_plural.values() or [entry.msgstr]
        if not _same_marks(entry, text)
    ]

    assert broken == []


def test_the_compiled_catalogue_is_current(written: polib.POFile) -> None:
    compiled = polib.mofile(str(CATALOGUE.with_suffix(".mo")))

    def texts(catalogue: polib.POFile | polib.MOFile) -> set[tuple[str | None, str, str]]:
        return {(e.msgctxt, e.msgid, e.msgstr or str(e.msgstr_plural)) for e in catalogue if not e.obsolete}

    assert texts(compiled) == texts(written)


def _name(entry: polib.POEntry) -> tuple[str | None, str]:
    return entry.msgctxt, entry.msgid


def _same_marks(entry: polib.POEntry, text: str) -> bool:
    # A plural's source has two forms; Chinese has one, which follows the second.
    source = entry.msgid_plural or entry.msgid
    return all(sorted(marks.findall(source)) == sorted(marks.findall(text)) for marks in (PLACEHOLDERS, STATES))
