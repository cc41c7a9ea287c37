"""What holds for every test: no blocked event loop, no silent skip in CI, a fast and a deep search of examples."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import HealthCheck, settings

# `fast` is the everyday run and repeats itself: what it finds today it found yesterday. `deep` looks elsewhere
# every time and takes as long as it takes: `tests/run --hypothesis-profile deep --timeout 0`, or HYPOTHESIS_PROFILE=deep.
_SLOW_MACHINES = [HealthCheck.too_slow]
settings.register_profile(
    "fast", max_examples=100, deadline=None, derandomize=True, suppress_health_check=_SLOW_MACHINES
)
settings.register_profile("deep", max_examples=10_000, deadline=None, suppress_health_check=_SLOW_MACHINES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

CI = os.environ.get("CI") == "true"


@pytest.fixture(autouse=True)
def blocked_loop_fails() -> Iterator[BlockBuster]:
    """A blocking call (file, socket, sleep, subprocess) that comes from `proxy` while a loop runs raises.

    Calls that do not pass through `proxy` (pytest's own, a test's) are none of its business.
    """
    with blockbuster_ctx("proxy") as blockbuster:
        yield blockbuster


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: under CI=true nothing may be skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report
