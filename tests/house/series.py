"""The series that Prometheus gets, with the labels that each has."""

from __future__ import annotations

from typing import Final

from prometheus_client import Histogram

from proxy.metrics import METRICS

SUFFIXES: Final = ("_bucket", "_sum", "_count")
"""Of a histogram's series."""
LABELS: Final = {
    row.name + suffix: {*row.labels, *(["le"] if suffix == "_bucket" else [])}
    for row in METRICS
    for suffix in (SUFFIXES if row.kind is Histogram else ("",))
}
