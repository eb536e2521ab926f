"""`is_member` and `is_account_group_member`: the groups of whoever runs the update are those of the parameter `lakelet.groups` (LG-26).

Without it nobody is in a group, which hides what a query shows to a group only.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from lakelet.jvm.sessions import has_function, java_session, plain_sql
from lakelet.language.sql_text.tokens import literal
from lakelet.spark.patches.notices import tell

PARAMETER = "lakelet.groups"
NAMES = ("is_member", "is_account_group_member")


def register(session: SparkSession) -> None:
    """Give the JVM session of this thread the two functions, unless it has functions of these names; notice where no group is given."""
    given = session.conf.get(PARAMETER, None)
    groups = [group.strip() for group in (given or "").split(",") if group.strip()]
    member = f"coalesce(name IN ({', '.join(map(literal, groups))}), false)" if groups else "false"
    for function in NAMES:
        if not has_function(session, function):
            plain_sql(java_session(session), f"CREATE TEMPORARY FUNCTION {function}(name STRING) RETURNS BOOLEAN RETURN {member}")
    if given is None:
        tell(f"is_member and is_account_group_member are false for every group: name those that you are in, --param {PARAMETER}=a,b")


__all__ = ["NAMES", "PARAMETER", "register"]
