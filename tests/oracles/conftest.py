"""Other people's numbers for ours. Each test file here is collected only where the libraries it asks are installed:

    pip install structured-logprobs==0.1.5 llm-structured-confidence==0.4.5 scikit-learn==1.9.1 scipy
    pip install --no-deps uqlm==0.6.7 lm-polygraph==0.7.0

In an environment of their own, beside the proxy and the `tests` group: structured-logprobs holds `openai` at 1.58, and
the last two would bring torch. They are no dependency group because one cannot say `--no-deps`. What the libraries
said is kept in tests/core, where every run compares with it.
"""

from importlib.util import find_spec

NEEDS = {
    "test_calibration_oracle.py": ("sklearn",),
    "test_fields_oracle.py": ("structured_logprobs", "llm_structured_confidence"),
    "test_figures_oracle.py": ("scipy", "uqlm", "lm_polygraph"),
}

collect_ignore = [
    file for file, packages in NEEDS.items() if not all(find_spec(package) for package in packages)
]
