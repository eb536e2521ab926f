"""Which commits tell every file that their table has."""

from __future__ import annotations

import json

import pytest

from lakelet.storage.delta.known_files import whole_content

COUNTED = json.dumps({"lakelet": {"rows": 2}})


def commit(*, mode="Overwrite", operation="WRITE", noted=COUNTED, add=("a", "b"), remove=("old",), partition=None):
    info = {"operation": operation, "operationParameters": {"mode": mode}, "userMetadata": noted}
    files = [
        {kind: {"path": path, "partitionValues": partition or {}}} for kind, paths in (("remove", remove), ("add", add)) for path in paths
    ]
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in [{"commitInfo": info}, *files])


def test_a_commit_that_replaced_everything_tells_the_files_of_the_table():
    assert whole_content(commit()) == ['{"add":{"path":"a","partitionValues":{}}}', '{"add":{"path":"b","partitionValues":{}}}']
    assert whole_content(commit(add=())) == []


def test_a_commit_that_says_that_it_replaced_everything_is_believed_whatever_its_partitions():
    said = json.dumps({"lakelet": {"rows": 2}, "lakelet.whole": True})
    day = {"day": "2026-03-01"}
    assert whole_content(commit(noted=said, mode="Append", add=("a",), partition=day)) == [
        '{"add":{"path":"a","partitionValues":{"day":"2026-03-01"}}}'
    ]
    assert whole_content(commit(noted=said, add=(), remove=())) == []


@pytest.mark.parametrize(
    "text",
    [
        commit(mode="Append"),
        commit(operation="OPTIMIZE"),
        commit(noted=None),  # an overwrite by others may be one of some partitions
        commit(noted="a remark"),
        commit(noted='{"other": 1}'),
        commit(noted='"lakelet"'),
        commit(partition={"day": "2026-03-01"}),  # so may one of Lakelet's
        commit(partition={"day": "2026-03-01"}, add=()),
        commit(add=(), remove=()),
        "",
    ],
)
def test_any_other_commit_does_not(text):
    assert whole_content(text) is None
