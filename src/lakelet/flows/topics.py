"""What a flow does about the topics of Kafka that it reads: it compares them with its checkpoint, before its query starts (KA-3 to KA-7).

Spark goes on at the offset where it was. A topic that was deleted and made again has other records at these offsets, which Spark reads as
if nothing had happened, and those before them never. So the ids of the topics lie beside the checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lakelet.base.errors import LakeletError, unknown_format
from lakelet.base.redaction import redacted
from lakelet.base.text import counted, listed
from lakelet.files.durable import write_atomically
from lakelet.flows.checkpoints import read_checkpoint
from lakelet.flows.context import FlowTask
from lakelet.flows.failures import other_sources
from lakelet.jvm.kafka import NO_ID, BrokerUnreachable, Topic, topics
from lakelet.plan.decisions import SourcePosition
from lakelet.spark.errors.diagnosis import BROKER_AWAY_TODO

_FORMAT = 1
_NOTE = "topics.json"
_SHOWN = 3
_KEEP_LOSS = "failondataloss"


def topics_position(task: FlowTask, leaf: int, options: Mapping[str, str], offset: str | None) -> SourcePosition:
    """Whether the topics of a source, the streaming leaf of that number, have records beyond an offset of the checkpoint."""
    name = _name(options)
    try:
        found = topics(task.environment.spark, options, _subscribed(options))
    except BrokerUnreachable as problem:
        return SourcePosition(name, None, f"{name} cannot be asked: {redacted(str(problem))}")
    if found is None or offset is None:
        return SourcePosition(name, None, f"{name} cannot be compared without reading it")
    read, new = _read(offset), 0
    if read is None:
        return SourcePosition(name, True, f"{name} is read in place of another source")
    if lost := next(_losses(read, found, _noted(task).get(str(leaf), {})), None):
        return SourcePosition(name, True, lost)
    for topic, now in found.items():
        for number, (first, last) in now.partitions.items():
            new += last - read.get(topic, {}).get(number, first)
    if new:
        return SourcePosition(name, True, f"{name} has {counted(new, 'new offset')}")
    return SourcePosition(name, False, f"{name} has no new offset")


def check_topics(task: FlowTask) -> None:
    """Compare the topics that the flow reads with its checkpoint, and note their ids.

    Raises KAFKA_TOPIC_MISSING, KAFKA_UNREACHABLE, FORMAT_UNKNOWN, STORAGE_DAMAGED, STREAM_SOURCES_CHANGED where another kind of source
    was read so far, and KAFKA_DATA_LOST unless the source says failOnDataLoss = false.
    """
    stream = task.flow.stream
    sources = [(number, options) for number, options in enumerate(stream.topics) if options is not None]
    if not sources:
        return
    offsets, noted = read_checkpoint(task.checkpoint()).offsets, _noted(task)
    ids = dict(noted)
    for number, options in sources:
        found = _asked(task, options)
        if found is None:
            continue
        offset = offsets[number] if len(offsets) == len(stream.leaves) else None
        read = {} if offset is None else _read(offset)
        if read is None:
            raise other_sources(task, f"{_name(options)} stands where a source of another kind was read")
        losses = list(_losses(read, found, noted.get(str(number), {})))
        if losses and _lower(options).get(_KEEP_LOSS, "true").lower() != "false":
            raise _lost(task, options, losses)
        for text in losses:
            _warn(task, f"{text}; it goes on, as failOnDataLoss is false")
        if missing := [name for name in _subscribed(options) if name not in found]:
            raise _error(
                task,
                "KAFKA_TOPIC_MISSING",
                f"{_servers(options)} has no topic {listed(missing, _SHOWN)}",
                None,
                "Create it, or correct the option subscribe.",
            )
        ids[str(number)] = {name: topic.id for name, topic in found.items() if topic.id != NO_ID}
    if ids != noted:
        write_atomically(task.checkpoint() / _NOTE, json.dumps({"format": _FORMAT, "ids": ids}))


def _asked(task: FlowTask, options: Mapping[str, str]) -> Mapping[str, Topic] | None:
    try:
        return topics(task.environment.spark, options, _subscribed(options))
    except BrokerUnreachable as problem:
        what = f"{_servers(options)} does not answer, or refuses"
        raise _error(task, "KAFKA_UNREACHABLE", what, redacted(str(problem)), BROKER_AWAY_TODO) from problem


def _losses(read: Mapping[str, Mapping[int, int]], found: Mapping[str, Topic], ids: Mapping[str, str]) -> Iterator[str]:
    """What was lost since the flow read its topics. `read`: the offsets from which it goes on; `ids`: of the topics that it has read."""
    for topic, partitions in read.items():
        now = found.get(topic)
        if now is None:
            yield f"the topic {topic} is gone"
        elif NO_ID != now.id != ids.get(topic, now.id):
            yield f"the topic {topic} was deleted and made again"
        else:
            for number, offset in partitions.items():
                first, last = now.partitions.get(number, (0, -1))
                if last < offset:
                    yield f"partition {number} of the topic {topic} ends before the offset {offset}, which was read"
                elif first > offset:
                    gone = f"{counted(first - offset, 'record')} of partition {number} of the topic {topic}"
                    yield f"{gone} were deleted before they were read (offsets {offset} to {first - 1})"


def _lost(task: FlowTask, options: Mapping[str, str], losses: list[str]) -> LakeletError:
    again = f"lakelet run --reset-checkpoint {task.name}"
    rebuilt = f"lakelet run --full-refresh {task.dataset.name}"
    todo = (
        f"To keep the rows and read what the topic has now from its startingOffsets: {again}\n"
        f"To begin with an empty table: {rebuilt}\n"
        'To go on in any such case: .option("failOnDataLoss", "false").'
    )
    why = f"{_servers(options)} does not have what comes next for this flow, so records may be missing"
    return _error(task, "KAFKA_DATA_LOST", "; ".join(losses[:_SHOWN]), why, todo)


def _error(task: FlowTask, code: str, what: str, why: str | None, todo: str) -> LakeletError:
    return LakeletError(code, what, dataset=str(task.dataset.name), where=task.declared.where, why=why, todo=todo)


def _warn(task: FlowTask, text: str) -> None:
    task.environment.reporter.notice(f"Flow '{task.name}': {text}.", text=text, dataset=str(task.dataset.name), flow=task.name)


def _noted(task: FlowTask) -> Mapping[str, Mapping[str, str]]:
    """The ids of the topics that the flow has read, by number of the streaming leaf, as clusters share names, and by name.

    Raises FORMAT_UNKNOWN, STORAGE_DAMAGED.
    """
    file = task.checkpoint() / _NOTE
    try:
        kept: Any = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except ValueError:
        todo = "Delete the file: the next update notes the ids again, and takes the topics that it finds for those that were read."
        why = "It was changed by another program; Lakelet writes it at once or not at all."
        raise LakeletError("STORAGE_DAMAGED", f"{file} cannot be read", why=why, todo=todo) from None
    if kept["format"] != _FORMAT:
        raise unknown_format(file, kept["format"], _FORMAT)
    found: Mapping[str, Mapping[str, str]] = kept["ids"]
    return found


def _read(offset: str) -> dict[str, dict[int, int]] | None:
    """The offset of Spark's source: by topic and partition. None where it is one of another kind of source."""
    try:
        return {topic: {int(number): int(at) for number, at in parts.items()} for topic, parts in json.loads(offset).items()}
    except (AttributeError, TypeError, ValueError):
        return None


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {key.lower(): value for key, value in options.items()}


def _subscribed(options: Mapping[str, str]) -> list[str]:
    """The topics that a source names; none where it has a pattern."""
    given = _lower(options)
    if "assign" in given:
        return list(json.loads(given["assign"]))
    return [name.strip() for name in given.get("subscribe", "").split(",") if name.strip()]


def _servers(options: Mapping[str, str]) -> str:
    return f"the broker {redacted(_lower(options).get('kafka.bootstrap.servers', ''))}"


def _name(options: Mapping[str, str]) -> str:
    names = _subscribed(options)
    if not names:
        return f"the topics {_lower(options).get('subscribepattern', '')}"
    return f"the topic {names[0]}" if len(names) == 1 else f"the topics {listed(names, _SHOWN)}"


__all__ = ["check_topics", "topics_position"]
