"""Topics of Kafka: which a source of Spark's reads, their ids, and the first and the last offset of each partition."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from lakelet.jvm.errors import Py4JError
from lakelet.jvm.java_sources import compiled

_SECONDS = 15
_NAME = "lakelet.Topics"
# Spark's own reader of offsets is private. Janino knows no generics, no lambdas and no static methods of interfaces.
_SOURCE = """
package lakelet;

import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;

public class Topics implements java.util.function.Function {
  public Object apply(Object given) {
    Map options = (Map) given;
    Collection subscribed = (Collection) options.get("subscribe");
    String pattern = (String) options.get("subscribePattern");
    Properties settings = new Properties();
    settings.putAll((Map) options.get("kafka"));
    AdminClient admin = null;
    try {
      admin = AdminClient.create(settings);
      Collection names = new TreeSet();
      Iterator all = ((Set) admin.listTopics().names().get()).iterator();
      while (all.hasNext()) {
        String name = (String) all.next();
        boolean matches = pattern != null
          ? java.util.regex.Pattern.compile(pattern).matcher(name).matches()
          : subscribed.contains(name);
        if (matches) names.add(name);
      }
      Map earliest = new HashMap(), latest = new HashMap();
      StringBuilder text = new StringBuilder();
      Iterator described = ((Map) admin.describeTopics(names).allTopicNames().get()).values().iterator();
      while (described.hasNext()) {
        TopicDescription topic = (TopicDescription) described.next();
        text.append("T ").append(topic.topicId()).append(" ").append(topic.name()).append("\\n");
        Iterator parts = topic.partitions().iterator();
        while (parts.hasNext()) {
          TopicPartition part = new TopicPartition(topic.name(), ((TopicPartitionInfo) parts.next()).partition());
          earliest.put(part, OffsetSpec.earliest());
          latest.put(part, OffsetSpec.latest());
        }
      }
      boolean committed = "read_committed".equals(settings.get("isolation.level"));
      ListOffsetsOptions how = new ListOffsetsOptions(committed ? IsolationLevel.READ_COMMITTED : IsolationLevel.READ_UNCOMMITTED);
      Map first = (Map) admin.listOffsets(earliest, how).all().get();
      Map last = (Map) admin.listOffsets(latest, how).all().get();
      Iterator found = first.keySet().iterator();
      while (found.hasNext()) {
        TopicPartition part = (TopicPartition) found.next();
        long from = ((ListOffsetsResult.ListOffsetsResultInfo) first.get(part)).offset();
        long to = ((ListOffsetsResult.ListOffsetsResultInfo) last.get(part)).offset();
        text.append("P ").append(part.partition()).append(" ").append(from).append(" ").append(to).append(" ")
          .append(part.topic()).append("\\n");
      }
      return text.toString();
    } catch (Exception problem) {
      Throwable cause = problem;
      while (cause.getCause() != null && cause.getCause() != cause) cause = cause.getCause();
      return "E " + cause.getClass().getSimpleName() + ": " + cause.getMessage();
    } finally {
      if (admin != null) admin.close(java.time.Duration.ofSeconds(1));
    }
  }
}
"""


@dataclass(frozen=True)
class Topic:
    """A topic as the broker has it now. `partitions`: number of each → its first offset, and the offset after its last record."""

    id: str
    partitions: Mapping[int, tuple[int, int]]


NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What brokers say that know no ids of topics (Kafka before 2.8)."""


class BrokerUnreachable(Exception):
    """The broker did not answer, or refused; the text is its reason."""


def topic_options(leaf: Any) -> Mapping[str, str] | None:
    """The options of a streaming leaf of a plan that reads topics; None for any other leaf."""
    try:
        if leaf.nodeName() != "StreamingRelationV2" or leaf.sourceName() != "kafka":
            return None
        return {str(key): str(value) for key, value in leaf.extraOptions().asCaseSensitiveMap().items()}
    except Py4JError:
        return None


def topics(spark: SparkSession, options: Mapping[str, str], named: Sequence[str]) -> Mapping[str, Topic] | None:
    """The topics that a source with these options reads, by name; one that does not exist is left out. `named`: by its options.

    None where this Java cannot be asked. Raises BrokerUnreachable.
    """
    given = {key.lower(): value for key, value in options.items()}  # as Spark reads them
    client = {key[len("kafka.") :]: value for key, value in given.items() if key.startswith("kafka.")}
    longest = client.get("default.api.timeout.ms", _at_least(client.get("request.timeout.ms")))
    times = {"default.api.timeout.ms": longest, "request.timeout.ms": longest}
    context: Any = spark.sparkContext
    try:
        wanted, settings, names = (getattr(context._jvm.java.util, kind)() for kind in ("HashMap", "HashMap", "ArrayList"))
        for key, value in {**times, **client}.items():
            settings.put(key, value)
        for name in named:
            names.add(name)
        for key, value in {"kafka": settings, "subscribe": names, "subscribePattern": given.get("subscribepattern")}.items():
            wanted.put(key, value)
        function = compiled(context, _SOURCE).loadClass(_NAME).getConstructors()[0].newInstance(None)
        text = str(function.apply(wanted))
    except Py4JError:
        return None
    if text.startswith("E "):
        raise BrokerUnreachable(text[2:])
    found = _parsed(text)
    if "assign" not in given:
        return found
    assigned: Mapping[str, list[int]] = json.loads(given["assign"])
    return {name: replace(topic, partitions=_some(topic.partitions, assigned[name])) for name, topic in found.items()}


def _some(partitions: Mapping[int, tuple[int, int]], numbers: list[int]) -> Mapping[int, tuple[int, int]]:
    return {number: offsets for number, offsets in partitions.items() if number in numbers}


def _at_least(milliseconds: str | None) -> str:
    """How long all requests together may take; the client refuses less than for one."""
    return str(max(_SECONDS * 1000, int(milliseconds))) if milliseconds and milliseconds.isdigit() else str(_SECONDS * 1000)


def _parsed(text: str) -> Mapping[str, Topic]:
    ids: dict[str, str] = {}
    partitions: dict[str, dict[int, tuple[int, int]]] = {}
    for line in text.splitlines():
        if line.startswith("T "):
            _, id, name = line.split(" ", 2)
            ids[name] = id
        else:
            _, number, first, last, name = line.split(" ", 4)
            partitions.setdefault(name, {})[int(number)] = (int(first), int(last))
    return {name: Topic(id, partitions.get(name, {})) for name, id in ids.items()}


__all__ = ["NO_ID", "BrokerUnreachable", "Topic", "topic_options", "topics"]
