"""Each campaign in a size that a test run can bear; `make faults` runs them long."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from tests.faults.campaigns import CAMPAIGNS, STORE, Campaign
from tests.support.postgres import MISSING, is_installed


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals, and files that are replaced while open")
@pytest.mark.parametrize("campaign", CAMPAIGNS, ids=lambda campaign: campaign.run.__name__)
def test_nothing_is_lost_and_nothing_hangs(campaign: Campaign, tmp_path: Path) -> None:
    outcome = campaign.run(tmp_path, campaign.few, Random(7))
    assert outcome.count
    assert (outcome.lost, outcome.hung) == ([], [])


@pytest.mark.skipif(not is_installed(), reason=MISSING)
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "campaign", [one for one in STORE if one.few], ids=lambda campaign: campaign.run.__name__
)
def test_nothing_is_lost_by_the_servers_of_a_memory_in_postgresql(campaign: Campaign, tmp_path: Path) -> None:
    outcome = campaign.run(tmp_path, campaign.few, Random(7))
    assert outcome.count
    assert (outcome.lost, outcome.hung) == ([], [])
