"""Writes logprob-proxy.json, the Grafana dashboard, beside this file: `python deploy/grafana/dashboard.py`.

Law: no data source, job or model is fixed: each is a variable. Panels of confidence read `part="answer"` only, and
panels that count errors keep the series whose model is empty: those of requests that failed before a model was known.

Needs grafana-foundation-sdk, the version made for Grafana 11.6: others write another schema.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as kinds
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

FILE: Final = Path(__file__).with_name("logprob-proxy.json")
SOURCE: Final = models.DataSourceRef(type_val="prometheus", uid="${datasource}")
WIDTH: Final = 24

JOB: Final = 'job=~"$job"'
WHERE: Final = f'{JOB}, model=~"$model", api=~"$api"'
ERRORS: Final = f'{JOB}, model=~"$model|", api=~"$api"'  # an empty model too
ANSWER: Final = f'{WHERE}, part="answer"'


def rate(name: str, where: str = WHERE, by: str = "", function: str = "rate") -> str:
    grouping = f" by ({by})" if by else ""
    return f"sum{grouping} ({function}({name}{{{where}}}[$__rate_interval]))"


def mean(name: str, where: str, by: str = "model") -> str:
    """Of a histogram's values: sums and counts are added up first, so that no average of averages comes out."""
    return f"{rate(f'{name}_sum', where, by)} / {rate(f'{name}_count', where, by)}"


def quantiles(
    name: str, *shares: float, where: str = WHERE, by: str = "model"
) -> tuple[tuple[str, str], ...]:
    buckets = rate(f"{name}_bucket", where, f"{by}, le" if by else "le")
    series = f"{{{{{by}}}}} " if by else ""
    return tuple(
        (f"histogram_quantile({share:g}, {buckets})", f"{series}p{share * 100:g}") for share in shares
    )


def newest(metric: str, by: str) -> str:
    """1 for five minutes behind the start of a series."""
    return f"max by ({by}) ({metric}) unless max by ({by}) ({metric} offset 5m)"


@dataclass(frozen=True)
class Panel:
    title: str
    kind: str  # lines, stacked, stat, setting (a stat without its past), heatmap or table
    unit: str
    description: str
    queries: tuple[tuple[str, str], ...]
    """Expression and legend of each."""
    width: int = 8
    height: int = 8
    steps: tuple[tuple[float, str], ...] = ()
    """Values from which the colour changes; lines show the value itself."""
    limits: tuple[float, float | None] | None = None
    """Of the axis; from 0, and to 1 where the unit is percentunit, if nothing is said."""
    scale: kinds.ScaleDistribution | None = None


LOW = rate("logprob_low_confidence_tokens_total", ANSWER, "model")
LOWABLE = rate("logprob_tokens_total", f'{ANSWER}, status=~"scored|sentinel"', "model")
FAILED = rate("logprob_proxy_requests_total", f'{ERRORS}, code=~"[45]..", code!="499"')
OWN = f'{ERRORS}, origin="proxy", code=~"[45]..", code!="499"'
ALL = rate("logprob_proxy_requests_total", ERRORS)
UNLIKELIER = rate("logprob_not_top1_tokens_total", WHERE, "model")
COMPARED = rate("logprob_alternatives_tokens_total", WHERE, "model")
MISSING = rate("logprob_responses_total", f'{WHERE}, outcome="missing"')
EXPECTED = rate("logprob_responses_total", f'{WHERE}, outcome=~"scored|missing"')

OWN_PAST = "It is confidence, not correctness: compare a model with its own past only."
RULES = "Needs the recording rules of deploy/prometheus: without them the panel is empty."
TOGETHER = "All selected models together: select one to see it alone."


def distribution(title: str, name: str, unit: str, description: str, where: str = WHERE) -> Panel:
    expr = rate(f"{name}_bucket", where, "le", "increase")
    return Panel(title, "heatmap", unit, f"{description} {TOGETHER}", ((expr, "{{le}}"),))


NOW = (
    Panel(
        "Requests",
        "stat",
        "reqps",
        "Requests a second that ended, whatever their status.",
        ((ALL, "requests"),),
        4,
        4,
    ),
    Panel(
        "Error share",
        "stat",
        "percentunit",
        "Share of requests that were answered with 4xx or 5xx, by the upstream or by the proxy. 499 (the client left"
        " before a status) is not counted as an error.",
        ((f"({FAILED} or vector(0)) / {ALL}", "errors"),),
        4,
        4,
        steps=((0.01, "yellow"), (0.05, "red")),
    ),
    Panel(
        "Mean token probability",
        "stat",
        "percentunit",
        f"Mean probability of the answer tokens that were chosen, as the upstream reports it. {OWN_PAST}",
        ((mean("logprob_token_probability", ANSWER), "{{model}}"),),
        4,
        4,
    ),
    Panel(
        "Low-confidence share",
        "stat",
        "percentunit",
        "Share of answer tokens with a probability of the threshold or less, which is a setting of the proxy."
        f" {OWN_PAST}",
        ((f"{LOW} / {LOWABLE}", "{{model}}"),),
        4,
        4,
    ),
    Panel(
        "Missing share",
        "stat",
        "percentunit",
        "Share of answers without logprobs among those that should have them: asked for, and text came. Above 0 the"
        " confidence below speaks of fewer answers than were given.",
        ((f"({MISSING} or vector(0)) / {EXPECTED}", "missing"),),
        4,
        4,
        steps=((0.01, "yellow"), (0.05, "red")),
    ),
    Panel(
        "Requests in flight",
        "stat",
        "short",
        "Requests being served now, by all instances together.",
        ((f"sum (logprob_proxy_inflight_requests{{{JOB}}})", "in flight"),),
        4,
        4,
    ),
)

TRAFFIC = (
    Panel(
        "Requests by status and origin",
        "stacked",
        "reqps",
        "Status sent to the client, and who made it: the upstream, or the proxy itself (a refused parameter, a"
        " limit, an upstream that could not be reached). 499: the client left before a status. The first request of"
        " a status is not seen where its series begins at 1: all but the proxy's 500, 502, 503 and 504.",
        ((f"{rate('logprob_proxy_requests_total', ERRORS, 'code, origin')} > 0", "{{code}} {{origin}}"),),
    ),
    Panel(
        "Errors",
        "stacked",
        "reqps",
        "Refusals and errors that the proxy itself answered with, by status; and faults of the upstream or of the way"
        " to it, by kind (of all models: they carry none). An error status that the upstream sent is no such fault."
        " One fault may be counted in both.",
        (
            (
                f"{rate('logprob_proxy_requests_total', OWN, 'code')} > 0",
                "proxy {{code}}",
            ),
            (f"{rate('logprob_proxy_upstream_errors_total', JOB, 'kind')} > 0", "upstream {{kind}}"),
        ),
    ),
    Panel(
        "Answers by outcome",
        "stacked",
        "reqps",
        "What became of the logprobs of each answer. missing: asked for, text came, no logprobs. not_asked: nobody"
        " asked. not_applicable: tool calls, empty or refused content. passthrough: not an answer that is read."
        " upstream_cut, client_closed: it ended early.",
        ((f"{rate('logprob_responses_total', ERRORS, 'outcome')} > 0", "{{outcome}}"),),
    ),
    Panel(
        "Duration",
        "lines",
        "s",
        "From a request's head to the end of its answer, the upstream's time included: long answers take long."
        " Quantiles are estimates within the buckets.",
        quantiles("logprob_proxy_request_duration_seconds", 0.5, 0.95, 0.99),
    ),
    Panel(
        "Time to first chunk",
        "lines",
        "s",
        "From a request's head to the first byte of the answer's body that left for the client. For a whole answer"
        " it is nearly the whole duration. Quantiles are estimates within the buckets.",
        quantiles("logprob_proxy_time_to_first_chunk_seconds", 0.5, 0.95, 0.99),
    ),
    Panel(
        "Requests in flight and their limit",
        "lines",
        "short",
        "Requests being served, and how many may be at one time, all instances together; above it the answer is 503."
        " The axis is logarithmic from 1 on.",
        (
            (f"sum (logprob_proxy_inflight_requests{{{JOB}}})", "in flight"),
            (f"sum (logprob_proxy_inflight_limit{{{JOB}}})", "limit"),
        ),
        # Few requests under a limit of a thousand would be a line along the bottom.
        scale=kinds.ScaleDistribution.SYMLOG,
    ),
    Panel(
        "Validation errors",
        "stacked",
        "reqps",
        "Requests refused for a logprob parameter or a wrong `confidence`, without calling the upstream. A client at"
        " fault, or a profile that does not fit the upstream. Of all models: they carry none.",
        ((f"{rate('logprob_validation_errors_total', JOB, 'param, reason')} > 0", "{{param}}: {{reason}}"),),
    ),
    Panel(
        "Model behind each model",
        "table",
        "none",
        "Which model answered (response_model) when one was asked for (model), since the proxy's start. A second line"
        " for one model: several answer to that name, or it was given to another. Its figures then are of both.",
        ((f'max by (model, response_model) (logprob_model_info{{{JOB}, model=~"$model"}})', ""),),
    ),
    Panel(
        "Tokens by part and status",
        "stacked",
        "short",
        "Chosen tokens a second. scored: with a logprob. unscored: null, NaN or none. sentinel: a number that stands"
        " for 'not among those kept'. part: answer, reasoning, or other (end tokens, fences, an echoed prompt). Not"
        " the upstream's own usage count.",
        ((f"{rate('logprob_tokens_total', WHERE, 'part, status')} > 0", "{{part}} {{status}}"),),
    ),
)

CONFIDENCE = (
    Panel(
        "Mean token probability",
        "lines",
        "percentunit",
        f"Mean probability of the answer tokens that were chosen, as the upstream reports it. {OWN_PAST}",
        ((mean("logprob_token_probability", ANSWER), "{{model}}"),),
    ),
    Panel(
        "Low-confidence share",
        "lines",
        "percentunit",
        "Share of answer tokens with a probability of the threshold or less (see the last row), sentinels among them."
        f" {OWN_PAST}",
        ((f"{LOW} / {LOWABLE}", "{{model}}"),),
    ),
    Panel(
        "Perplexity of all answer tokens",
        "lines",
        "short",
        "exp of the mean surprisal of all answer tokens together; 1 is certainty. Long answers weigh more, and one very"
        f" unlikely token shows. {OWN_PAST}",
        ((f"exp({mean('logprob_token_surprisal_nats', ANSWER)})", "{{model}}"),),
        limits=(1, None),
    ),
    Panel(
        "Mean surprisal: 30 minutes and a day",
        "lines",
        "short",
        "Mean surprisal (-logprob, nats) of answer tokens over 30 minutes beside that over a day. Apart for long:"
        f" the model, the prompts or the sampling changed. {RULES}",
        (
            (f"model:logprob_token_surprisal_nats:mean30m{{{ANSWER}}}", "{{model}} {{api}} 30 min"),
            (f"model:logprob_token_surprisal_nats:mean1d{{{ANSWER}}}", "{{model}} {{api}} 1 day"),
        ),
    ),
    Panel(
        "Drift of the distribution",
        "lines",
        "short",
        "Kolmogorov-Smirnov distance between the token probabilities of the last 30 minutes and those of the day before:"
        " 0 alike, 1 nothing in common. It says that something changed, not what, nor whether for the worse. The line"
        f" at 0.15 is an example. {RULES}",
        ((f"model:logprob_token_probability:ks30m_vs_1d{{{ANSWER}}}", "{{model}} {{api}}"),),
        steps=((0.15, "red"),),
        limits=(0, 1),
    ),
    Panel(
        "Perplexity of an answer",
        "lines",
        "short",
        "Quantiles of the perplexity of each choice; 1 is certainty. Estimates within the buckets; beyond 100 they"
        f" stay at 100. {OWN_PAST}",
        quantiles("logprob_response_perplexity", 0.5, 0.9, 0.99),
        limits=(1, None),
        scale=kinds.ScaleDistribution.LOG,
    ),
    Panel(
        "Lowest window of an answer",
        "lines",
        "percentunit",
        "Quantiles of the worst spot of each choice: geometric mean probability of its worst 16 answer tokens in a row."
        f" p10: a tenth of the answers have a worse spot. {OWN_PAST}",
        quantiles("logprob_response_lowest_window_probability", 0.1, 0.5),
        width=6,
    ),
    Panel(
        "Least probability of an answer",
        "lines",
        "percentunit",
        "Quantiles of the probability of the least likely answer token of each choice. Falls with length: compare"
        f" answers alike. {OWN_PAST}",
        quantiles("logprob_response_min_probability", 0.1, 0.5),
        width=6,
        limits=(0.0001, 1),
        scale=kinds.ScaleDistribution.LOG,
    ),
    Panel(
        "Mean margin",
        "lines",
        "percentunit",
        "Mean of the likeliest token's probability less the second's, over answer tokens that came with alternatives. 0"
        f" is a tie, which is no error. {OWN_PAST}",
        ((mean("logprob_token_margin", WHERE), "{{model}}"),),
        width=6,
    ),
    Panel(
        "Tokens that were not the likeliest",
        "lines",
        "percentunit",
        "Share of answer tokens for which an alternative was likelier, of those that came with alternatives. Sampling"
        " does that: a change of temperature shows here.",
        ((f"{UNLIKELIER} / {COMPARED}", "{{model}}"),),
        width=6,
    ),
)

DISTRIBUTIONS = (
    distribution(
        "Token probability",
        "logprob_token_probability",
        "percentunit",
        "Answer tokens by their probability; most are near 1 in most models. A band that moves down is a loss of"
        " confidence that a mean may hide.",
        ANSWER,
    ),
    distribution(
        "Token surprisal",
        "logprob_token_surprisal_nats",
        "short",
        "Answer tokens by their surprisal (-logprob, nats): it tells unlikely tokens apart that all have a"
        " probability near 0.",
        ANSWER,
    ),
    distribution(
        "Token margin",
        "logprob_token_margin",
        "percentunit",
        "Answer tokens that came with alternatives, by the likeliest token's probability less the second's. Near 0 the"
        " model hesitated between two.",
    ),
    distribution(
        "Perplexity of an answer",
        "logprob_response_perplexity",
        "short",
        "Choices by the perplexity of their answer tokens; 1 is certainty.",
    ),
    distribution(
        "Lowest window of an answer",
        "logprob_response_lowest_window_probability",
        "percentunit",
        "Choices by the geometric mean probability of their worst 16 answer tokens in a row.",
    ),
    distribution(
        "Least probability of an answer",
        "logprob_response_min_probability",
        "percentunit",
        "Choices by the probability of their least likely answer token. Falls with length.",
    ),
)

OVERHEAD = (
    Panel(
        "Rewriting time of an answer",
        "lines",
        "s",
        "Computing time that an answer's rewriting took, all its events together: the proxy's own share of latency, not"
        " the network's. Quantiles are estimates within the buckets.",
        quantiles("logprob_proxy_rewrite_seconds", 0.5, 0.99, where=JOB, by=""),
    ),
    Panel(
        "Rewriting, share of a core",
        "lines",
        "percentunit",
        "Computing time spent on rewriting a second, all instances together: 100% is one core. A worker has one core"
        " to use; reading and writing the network come on top.",
        ((rate("logprob_proxy_rewrite_seconds_sum", JOB), "rewriting"),),
        limits=(0, None),
    ),
    Panel(
        "Event loop lag",
        "lines",
        "s",
        "How late the event loop ran what was due: what every stream waits when one of them takes long, or the machine"
        " is busy. Estimates within the buckets; beyond 1 s they stay at 1 s.",
        quantiles("logprob_proxy_loop_lag_seconds", 0.5, 0.99, where=JOB, by=""),
    ),
    Panel(
        "Held bytes",
        "lines",
        "bytes",
        "Bytes of bodies and events held now, all requests and instances together. Above the setting max_held answers"
        " pass unchanged.",
        ((f"sum (logprob_proxy_held_bytes{{{JOB}}})", "held"),),
    ),
    Panel(
        "Rewrite failures",
        "stacked",
        "short",
        "What passed unchanged or uncounted because it was not understood, in each interval. The client got all"
        " bytes. internal: a fault of the proxy's own, please report it.",
        (
            (
                f"{rate('logprob_rewrite_failures_total', JOB, 'reason', 'increase')} > 0",
                "{{reason}}",
            ),
        ),
    ),
    Panel(
        "Observing refused",
        "lines",
        "short",
        "Requests, in each interval, for which the upstream refused the logprobs that only the proxy wanted; they were"
        " asked again without, and the model is left alone for an hour: its confidence is then not measured.",
        ((rate("logprob_observe_refused_total", WHERE, "model", "increase"), "{{model}}"),),
    ),
    Panel(
        "Answers of models counted as other",
        "lines",
        "short",
        "Answers, in each interval, whose model has no place of its own in the label because it was full. Above 0 the"
        " model `other` is a mixture and its confidence means little.",
        ((rate("logprob_model_label_overflow_total", JOB, function="increase"), "overflow"),),
        height=5,
    ),
    Panel(
        "Low-confidence threshold",
        "setting",
        "percentunit",
        "The probability up to which a token counts as one of low confidence: the setting, not a measurement. Two values:"
        " instances with different settings, whose shares should not be added.",
        (
            (f"min (logprob_low_confidence_threshold{{{JOB}}})", "least"),
            (f"max (logprob_low_confidence_threshold{{{JOB}}})", "most"),
        ),
        height=5,
    ),
    Panel(
        "Version",
        "setting",
        "none",
        "How many instances run each version.",
        ((f"count by (version) (logprob_proxy_build_info{{{JOB}}})", "{{version}}"),),
        height=5,
    ),
)

ROWS: Final = (
    ("", NOW),
    ("Traffic and health", TRAFFIC),
    ("Confidence", CONFIDENCE),
    ("Distributions", DISTRIBUTIONS),
    ("Proxy overhead", OVERHEAD),
)

Builder = timeseries.Panel | stat.Panel | heatmap.Panel | table.Panel


def lines(panel: Panel) -> timeseries.Panel:
    drawn = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(0)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(kinds.LegendDisplayMode.LIST)
            .placement(kinds.LegendPlacement.BOTTOM)
        )
        .tooltip(
            common.VizTooltipOptions().mode(kinds.TooltipDisplayMode.MULTI).sort(kinds.SortOrder.DESCENDING)
        )
    )
    if panel.kind == "stacked":
        drawn.fill_opacity(30).stacking(common.StackingConfig().mode(kinds.StackingMode.NORMAL))
    if panel.steps:
        drawn.thresholds_style(
            common.GraphThresholdsStyleConfig().mode(kinds.GraphThresholdsStyleMode.DASHED)
        )
    if panel.scale:
        scale = common.ScaleDistributionConfig().type(panel.scale).log(10)
        drawn.scale_distribution(scale.linear_threshold(1) if panel.scale == "symlog" else scale)
    return drawn


def single(panel: Panel) -> stat.Panel:
    return (
        stat.Panel()
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .graph_mode(kinds.BigValueGraphMode.AREA if panel.kind == "stat" else kinds.BigValueGraphMode.NONE)
        .color_mode(kinds.BigValueColorMode.VALUE)
        .text_mode(
            kinds.BigValueTextMode.VALUE_AND_NAME
            if len(panel.queries) > 1 or "{{" in panel.queries[0][1]
            else kinds.BigValueTextMode.VALUE
        )
    )


def buckets(panel: Panel) -> heatmap.Panel:
    return (
        heatmap.Panel()
        .calculate(False)
        .y_axis(heatmap.YAxisConfig().unit(panel.unit))
        .cell_values(heatmap.CellValues().unit("short"))
        .color(heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Viridis").steps(64))
        .filter_values(heatmap.FilterValueRange().le(1e-9))  # empty cells stay dark
        .mode(kinds.TooltipDisplayMode.SINGLE)
        .show_y_histogram()
    )


def listing(panel: Panel) -> table.Panel:
    unseen = {"Time": True, "Value": True}
    options = {"excludeByName": unseen, "renameByName": {"response_model": "response model"}}
    return table.Panel().with_transformation(models.DataTransformerConfig(id_val="organize", options=options))


DRAWN: Final[dict[str, Callable[[Panel], Builder]]] = {
    "lines": lines,
    "stacked": lines,
    "stat": single,
    "setting": single,
    "heatmap": buckets,
    "table": listing,
}


def built(panel: Panel, number: int, x: int, y: int) -> Builder:
    drawn = DRAWN[panel.kind](panel)
    drawn.id(number).title(panel.title).description(panel.description).unit(panel.unit)
    drawn.datasource(SOURCE).grid_pos(models.GridPos(panel.height, panel.width, x, y)).no_value("none")
    first = models.Threshold(value=None, color="green" if panel.steps else "text")
    steps = [first, *(models.Threshold(value, color) for value, color in panel.steps)]
    drawn.thresholds(dashboard.ThresholdsConfig().mode(models.ThresholdsMode.ABSOLUTE).steps(steps))
    if panel.kind != "heatmap":
        least, most = panel.limits or (0, 1 if panel.unit == "percentunit" else None)
        drawn.min(least)
        if most is not None:
            drawn.max(most)
    for letter, (expr, legend) in zip("ABC", panel.queries):
        query = prometheus.Dataquery().expr(expr).legend_format(legend).ref_id(letter).datasource(SOURCE)
        if panel.kind == "heatmap":
            query.format(PromQueryFormat.HEATMAP)
        elif panel.kind == "table":
            query.format(PromQueryFormat.TABLE).instant()
        drawn.with_target(query if panel.kind == "table" else query.range())
    return drawn


def choice(name: str, query: str) -> dashboard.QueryVariable:
    """Any number of a label's values; at first all of them, series without the label among them."""
    return (
        dashboard.QueryVariable(name)
        .query({"query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery", "qryType": 1})
        .datasource(SOURCE)
        .refresh(models.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(models.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .all_value(".*")
        .current(models.VariableOption(selected=True, text=["All"], value=["$__all"]))
    )


def annotation(name: str, expr: str, text: str, color: str) -> dict[str, Any]:
    """As Grafana 11 writes it: the SDK's own class has no text."""
    return {
        "name": name,
        "datasource": SOURCE.to_json(),
        "enable": True,
        "iconColor": color,
        "target": {"expr": expr, "refId": "Anno", "datasource": SOURCE.to_json()},
        "expr": expr,
        "titleFormat": name,
        "textFormat": text,
    }


def annotations() -> list[dict[str, Any]]:
    return [
        {
            "name": "Annotations & Alerts",
            "type": "dashboard",
            "builtIn": 1,
            "datasource": {"type": "grafana", "uid": "-- Grafana --"},
            "enable": True,
            "hide": True,
            "iconColor": "rgba(0, 211, 255, 1)",
        },
        annotation(
            "New version",
            newest(f"logprob_proxy_build_info{{{JOB}}}", "version"),
            "logprob-proxy {{version}}",
            "blue",
        ),
        annotation(
            "New response model",
            newest(f'logprob_model_info{{{JOB}, model=~"$model"}}', "model, response_model"),
            "{{model}} is answered by {{response_model}}",
            "orange",
        ),
    ]


def text() -> str:
    traffic = f"logprob_proxy_requests_total{{{JOB}}}"
    board = (
        dashboard.Dashboard("logprob-proxy")
        .uid("logprob-proxy")
        .description("Token confidence of LLM answers, and the proxy that measures it.")
        .tags(["llm", "logprobs", "logprob-proxy"])
        .refresh("30s")
        .time("now-6h", "now")
        .tooltip(models.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(choice("job", "label_values(logprob_proxy_build_info, job)"))
        .with_variable(choice("model", f"label_values({traffic}, model)"))
        .with_variable(choice("api", f"label_values({traffic}, api)"))
    )
    number, y = 0, 0
    for title, panels in ROWS:
        if title:
            number += 1
            board.with_row(dashboard.Row(title).id(number).grid_pos(models.GridPos(h=1, w=WIDTH, x=0, y=y)))
            y += 1
        x = height = 0
        for panel in panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            number += 1
            board.with_panel(built(panel, number, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    plain: dict[str, Any] = json.loads(JSONEncoder().encode(board.build()))
    plain |= {"id": None, "annotations": {"list": annotations()}}
    for variable in plain["templating"]["list"]:
        variable.pop("id", None)
    return JSONEncoder(indent=2, sort_keys=True).encode(plain) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
