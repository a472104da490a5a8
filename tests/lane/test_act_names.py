"""Every act that is recorded has a name for readers."""

import re
from pathlib import Path

from reviewboard.act_names import act_name

ROOT = Path(__file__).parents[2]
RECORDED = re.compile(r"audit\.record\(\s*\"([a-z_.]+)\"")


def test_every_act_that_the_code_records_by_name_is_shown_in_words():
    files = [path for folder in ("queue_core", "reviewboard") for path in (ROOT / folder).rglob("*.py")]
    recorded = {act for path in files for act in RECORDED.findall(path.read_text(encoding="utf-8"))}

    assert "lane.held" in recorded
    assert {act for act in recorded if act_name(act) == act} == set()


def test_an_act_of_a_later_version_is_shown_by_its_code():
    assert act_name("lane.painted") == "lane.painted"
