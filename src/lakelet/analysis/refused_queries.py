"""What stands against computing a query in part, with Databricks' names of the reasons (IV-15 to IV-17). No Spark.

In: nodes of the plan. Out: an `Issue` of the first thing that stands against it, or what the result depends on besides the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from lakelet.analysis.plan_tree import SUBQUERY, Flat, Node, tree
from lakelet.analysis.used_columns import output_of
from lakelet.plan.refreshes import OPERATOR, Issue, IssueType


class NotFollowed(Exception):
    """A query that is not computed in part, with the reason."""

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.reason)
        self.issue = issue


# ----------------------------------------------------------------------------------------------------------------- the query


CHANGES_WITH_TIME = "it uses the current time or user"
CALLS_PYTHON = "it calls Python functions"
NOT_DETERMINISTIC = "it is not deterministic"
WITHOUT_VERSION = "it reads data that carries no version"
ASKS_FOR_ROWS = "its function looks at rows"

OF_QUERIES: Mapping[str, Issue] = {
    CHANGES_WITH_TIME: Issue(
        IssueType.NOT_DETERMINISTIC,
        CHANGES_WITH_TIME,
        "TIME_FUNCTION",
        "Pass the date as a parameter of the pipeline, or ask for the current time in a view that reads this one.",
    ),
    CALLS_PYTHON: Issue(IssueType.NOT_DETERMINISTIC, CALLS_PYTHON, "USER_DEFINED_FUNCTION", "Use functions of Spark instead."),
    NOT_DETERMINISTIC: Issue(
        IssueType.NOT_DETERMINISTIC, NOT_DETERMINISTIC, "NON_DETERMINISTIC_EXPRESSION", "Leave out what gives other values each time."
    ),
    WITHOUT_VERSION: Issue(IssueType.NOT_IN_DELTA, WITHOUT_VERSION, None, "Load the data into a streaming table, and read that."),
    ASKS_FOR_ROWS: Issue(IssueType.PLAN, ASKS_FOR_ROWS, OPERATOR, "Write it as a part of the query: a join, an aggregate, a window."),
}
"""Reasons why a query can never be skipped either, by their text."""

WINDOW_OVER_ALL = Issue(
    IssueType.PLAN,
    "it has a window without PARTITION BY",
    "WINDOW_FUNCTION_WITHOUT_PARTITION_BY",
    "Add PARTITION BY, or put the window in a view above.",
)
JOIN_WITHOUT_CONDITION = Issue(
    IssueType.PLAN, "it joins a result of aggregates or windows without a condition", OPERATOR, "Join by an equality."
)
JOIN_ON_RESULTS = Issue(
    IssueType.PLAN,
    "it joins by values that an aggregate or a window computes, and by no column that rows are put together by",
    "AGGREGATE_NOT_TOP_NODE",
    "Join in a view that reads this one.",
)
NO_KEYS = Issue(
    IssueType.PLAN,
    "no column of its result is one that all its aggregates, windows and DISTINCTs put rows together by",
    "AGGREGATE_NOT_TOP_NODE",
    "Let the result have the columns of GROUP BY or PARTITION BY, or split the query into two views.",
)
ONE_ROW = Issue(
    IssueType.PLAN,
    "it puts all rows together: an aggregate without GROUP BY whose results cannot be put together with those of new rows",
    "AGGREGATE_NOT_TOP_NODE",
    "Group by a column in a view, and aggregate that one here.",
)
NO_KEY_TYPE = Issue(
    IssueType.KEY_TYPE,
    "the columns that it puts rows together by are maps, arrays, floating-point numbers or strings with a collation",
    None,
    "Group by columns of other types.",
)
SESSION_WINDOW = Issue(
    IssueType.PLAN, "it groups rows by session windows, which depend on each other", OPERATOR, "Use window() of a fixed length."
)
UNKNOWN_PLAN = Issue(IssueType.PLAN, "its plan has a form that is not known", OPERATOR)
TOO_LARGE = Issue(IssueType.PLAN, "its plan reads common table expressions too often to look at it", OPERATOR)


def reads_twice(key: str) -> Issue:
    """The issue of rows that are joined with themselves."""
    reason = f"it joins rows of {key} with themselves that its function reads once"
    return Issue(IssueType.PLAN, reason, OPERATOR, f"Read {key} once for each side of the join.")


def reads_metadata(key: str) -> Issue:
    """The issue of a query that depends on files."""
    return Issue(
        IssueType.PLAN, f"it asks in which files the rows of {key} lie (_metadata)", OPERATOR, "Keep the path as a column of the table."
    )


def reads_with_options(key: str) -> Issue:
    """The issue of a version or of the change feed of a table."""
    return Issue(IssueType.PLAN, f"it reads {key} with options, such as a version or the change feed", OPERATOR)


def reads_judged_view(name: str) -> Issue:
    """The issue of a view whose rows are counted."""
    reason = f"it reads the view {name}, whose rules count all rows that it reads"
    return Issue(IssueType.EXPECTATIONS, reason, None, f"Move the rules of {name} to the table that it reads, or to this one.")


_REFUSED: Mapping[str, tuple[str, str | None]] = {
    **dict.fromkeys(("GlobalLimit", "LocalLimit", "Tail"), ("it has LIMIT", "Limit the rows where the table is read.")),
    "Offset": ("it has OFFSET", None),
    "Sample": ("it takes a sample", None),
    "Intersect": ("it has INTERSECT", "Use an inner join on distinct rows."),
    "Except": ("it has EXCEPT", "Use a left join and keep the rows without a partner."),
    "CollectMetrics": ("it counts rows with observe()", None),
    "LateralJoin": ("it has a lateral join", "Use a join, or explode()."),
    "AsOfJoin": ("it has an as-of join", None),
    "OneRowRelation": ("it has rows that come from no table", "Keep them in a table."),
    "Range": ("it has rows that come from no table", "Keep them in a table."),
    "LocalRelation": ("it has rows that come from no table of the pipeline", "Keep them in a table of the pipeline."),
    "LogicalRelation": ("it reads a table from outside of the pipeline", "Load it into a streaming table, and read that."),
    "LogicalRDD": ("it reads rows that its function made", "Keep them in a table of the pipeline."),
}
_JOINS = {
    "LeftSemi": ("a semi join", "Use an inner join on distinct rows."),
    "LeftAnti": ("an anti join", "Use a left join and keep the rows without a partner."),
    "RightOuter": ("a right join", "Exchange the sides: a left join is followed."),
    "FullOuter": ("a full join", "Use a union of two left joins."),
}


def refused_operator(node: Node) -> Issue:
    """The issue of an operator that is not followed."""
    if node.kind == "Join":
        kind, remedy = _JOINS.get(node.option("joinType"), ("a join of an unknown kind", ""))
        return Issue(IssueType.PLAN, f"it has {kind}", OPERATOR, remedy or None)
    if node.kind.endswith(("InPandas", "InArrow")) or "Python" in node.kind:
        return OF_QUERIES[CALLS_PYTHON]
    reason, found = _REFUSED.get(node.kind, (f"it has the operator {node.kind}", None))
    kind = IssueType.NOT_IN_DELTA if node.kind in ("LogicalRelation", "LogicalRDD") else IssueType.PLAN
    return Issue(kind, reason, OPERATOR if kind == IssueType.PLAN else None, found)


# --------------------------------------------------------------------------------------------------------------- functions


AGGREGATES = frozenset(
    (
        *("Count", "CountIf", "Sum", "Average", "Min", "Max", "BoolAnd", "BoolOr", "BitAndAgg", "BitOrAgg", "BitXorAgg"),
        *("VariancePop", "VarianceSamp", "StddevPop", "StddevSamp", "Skewness", "Kurtosis", "Corr", "CovPopulation", "CovSample"),
        *("RegrCount", "RegrAvgX", "RegrAvgY", "RegrSXX", "RegrSXY", "RegrSYY", "RegrSlope", "RegrR2", "RegrIntercept"),
        *("Percentile", "Median", "PercentileCont", "PercentileDisc", "HyperLogLogPlusPlus", "PivotFirst", "MaxBy", "MinBy", "Mode"),
    )
)
"""Aggregate functions whose result depends on the rows and not on their order; of the last three between equal rows only."""
_OF_TIES = {"MaxBy": "max_by", "MinBy": "min_by", "Mode": "mode"}
_BY_ORDER = {
    "First": "first",
    "Last": "last",
    "AnyValue": "any_value",
    "CollectList": "collect_list",
    "CollectSet": "collect_set",
    "ListAgg": "listagg",
    "ApproximatePercentile": "percentile_approx",
}
_ORDERLESS = frozenset(("SortArray", "ArraySort", "Size", "Cardinality", "ArrayMin", "ArrayMax", "ArrayContains"))
"""Functions of an array whose result does not depend on the order of its elements."""
_RANKS = frozenset(("Rank", "DenseRank", "PercentRank", "CumeDist"))
_POSITIONS = {"RowNumber": "row_number", "NTile": "ntile", "Lag": "lag", "Lead": "lead", "NthValue": "nth_value"}
_USER_DEFINED = frozenset(
    ("ScalaUDF", "ScalaAggregator", "ScalaUDAF", "ApplyFunctionExpression", "V2Aggregator", "PythonUDF", "PythonUDAF")
)


@dataclass
class FunctionChecks:
    """Checks of the expressions of a plan. `by_chance`: functions that depend on the order of rows are allowed (`found` has them)."""

    by_chance: bool
    found: dict[str, None]

    def check(self, node: Node) -> None:
        """Raises NotFollowed for an expression of an operator that is not followed."""
        for flat in node.all_expressions():
            if len(flat) > 1 or SUBQUERY in flat[0]:
                self._check(flat)
        if any(group.name == "session_window" and isinstance(group.type, dict) for group in node.expressions("groupingExpressions")):
            raise NotFollowed(SESSION_WINDOW)  # Spark merges them later, by a mark that is not in the JSON
        if node.kind == "Deduplicate" and not {key.id for key in node.expressions("keys")}.issuperset(output_of(node.inputs[0])):
            self._by_order("dropDuplicates of some columns", "Take the row that you mean with row_number() or max_by().")

    def _check(self, flat: Flat) -> None:
        kinds = [str(fields["class"]).rpartition(".")[2] for fields in flat]
        if any(isinstance(fields.get(SUBQUERY), list) for fields in flat):
            raise NotFollowed(
                Issue(IssueType.PLAN, "it has a subquery in an expression", "SUBQUERY_EXPRESSION", "Use a join with the subquery.")
            )
        if any(kind in _USER_DEFINED or kind.startswith("Hive") for kind in kinds):
            raise NotFollowed(
                Issue(
                    IssueType.NOT_DETERMINISTIC,
                    "it calls functions that a user defined",
                    "USER_DEFINED_FUNCTION",
                    "Use functions of Spark.",
                )
            )
        if "AggregateExpression" in kinds or "WindowExpression" in kinds:
            self._check_functions(tree(flat), None, None)

    def _check_functions(self, node: Node, parent: Node | None, window: Node | None) -> None:
        if node.kind == "WindowExpression":
            self._check_window(node)
            window = node.children[1]
        elif node.kind == "AggregateExpression":
            self._check_aggregate(node.children[0], parent, window)
        for child in node.children:
            self._check_functions(child, node, window)

    def _check_window(self, node: Node) -> None:
        function, spec = node.children[0].kind, node.children[1]
        if function in _POSITIONS:
            self.found[f"{_POSITIONS[function]}() between rows that its ORDER BY puts equal"] = None
        elif function == "AggregateExpression":
            frame = next((child for child in spec.children if child.kind == "SpecifiedWindowFrame"), None)
            if frame is not None and frame.option("frameType") == "RowFrame" and _is_ordered(spec):
                self.found["a window of ROWS between rows that its ORDER BY puts equal"] = None
        elif function not in _RANKS:
            raise NotFollowed(Issue(IssueType.PLAN, f"it has the window function {function}", "AGGREGATE_WITH_UNSUPPORTED_EXPRESSION"))

    def _check_aggregate(self, function: Node, parent: Node | None, window: Node | None) -> None:
        name = function.kind
        if name in _OF_TIES:
            self.found[f"{_OF_TIES[name]}() between rows with equal values"] = None
        elif name in AGGREGATES or (name in ("CollectList", "CollectSet") and parent is not None and parent.kind in _ORDERLESS):
            return
        elif name in _BY_ORDER:
            ordered = (window is not None and _is_ordered(window)) or bool(function.expressions("orderExpressions"))
            if ordered:
                self.found[f"{_BY_ORDER[name]}() between rows that its ORDER BY puts equal"] = None
            else:
                self._by_order(
                    f"{_BY_ORDER[name]}()", "Use min_by(), max_by() or sort_array(), or ask for it with the refresh policy INCREMENTAL."
                )
        else:
            reason = f"it has the aggregate function {name}, which is not known to give the same for the same rows"
            raise NotFollowed(Issue(IssueType.PLAN, reason, "AGGREGATE_WITH_UNSUPPORTED_EXPRESSION"))

    def _by_order(self, what: str, remedy: str) -> None:
        if not self.by_chance:
            raise NotFollowed(
                Issue(IssueType.NOT_DETERMINISTIC, f"{what} depends on the order of rows", "NON_DETERMINISTIC_EXPRESSION", remedy)
            )
        self.found[f"{what}, by the order of rows"] = None


def _is_ordered(spec: Node) -> bool:
    return any(child.kind == "SortOrder" for child in spec.children)


def nodes_of(root: Node) -> Iterator[Node]:
    """The operators whose rows come into the result, each once."""
    seen = set[int]()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            pending.extend(reversed(node.inputs))
