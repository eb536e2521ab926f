"""Asks the package sdp-test itself: its verdict on the cases of `tests/yaml_test_cases.py`, as one JSON object on the last line of stdout.

Runs in a process of its own, with the package on its path: `python -m tests.conformance.sdp_test_verdicts FOLDER`.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from lakelet.testing.row_comparison import canonical, shown
from tests.yaml_test_cases import CASES, ERROR, PASSED

_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def main(folder: Path) -> None:
    """Write the projects below `folder` and run each test as the package's own plugin does."""
    import sdp_test.spec_runner as package
    from pyspark.sql import SparkSession

    settings = {**_SMALL, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    verdicts = {}
    for number, (name, case) in enumerate(CASES.items()):
        project = folder / str(number)
        case.write(project)
        os.chdir(project)
        verdicts[name] = _verdict(package, spark, project)
    print("\n" + json.dumps(verdicts))


def _verdict(package: Any, spark: Any, project: Path) -> str:
    try:
        found = _cases(package, project)
        (case,) = [case for _, case, _ in found]
        result = package.run_case(spark, case)
    except Exception as problem:
        if os.environ.get("SHOW_REASONS"):
            print(project.name, type(problem).__name__, str(problem)[:300].replace("\n", " "), file=sys.stderr, flush=True)
        return ERROR
    if not (result.left_minus_right or result.right_minus_left):
        return PASSED
    lines = differing("-", result.expected_rows, result.actual_rows) + differing("+", result.actual_rows, result.expected_rows)
    assert len(lines) == result.left_minus_right + result.right_minus_left
    return "\n".join(lines)


def _cases(package: Any, project: Path) -> list[Any]:
    """What its plugin collects in a project."""
    specs = package.find_spec_files(project)
    if specs:
        return [case for spec in specs for case in package.cases_from_spec(spec, project / "databricks.yml")]
    bundle = project / "databricks.yml"
    return list(package.cases_from_bundle(bundle) if bundle.exists() else package.cases_from_pipeline_file(project / "spark-pipeline.yml"))


def differing(sign: str, rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[str]:
    """The rows that the others do not hold as often, as lines."""
    left, lines = Counter(map(canonical, map(plain, others))), []
    for row in map(plain, rows):
        if left[canonical(row)] > 0:
            left[canonical(row)] -= 1
        else:
            lines.append("  ".join([sign, *map(shown, row.values())]).replace(f"{sign}  ", f"{sign} ", 1))
    return sorted(lines)


def plain(value: Any) -> Any:
    """Rows of Spark as dictionaries."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
