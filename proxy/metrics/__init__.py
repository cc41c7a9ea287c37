"""What Prometheus gets.

table    the one table
names    label values that others choose, bounded
record   one flush per Outcome
workers  the files in which several processes count, and the page made of them
"""

from proxy.metrics.record import Metrics
from proxy.metrics.table import METRICS, Metric, markdown

__all__ = ["METRICS", "Metric", "Metrics", "markdown"]
