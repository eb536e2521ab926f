"""Delta transactions that can leave a checkpoint out.

Delta decides in the commit of every tenth version that a checkpoint is due. Even where the checkpoint is written later, that commit counts
the files of the whole table for its statistics: a Spark job of 0.4 s in a round of 2 s. No setting of a session changes that.
"""

from __future__ import annotations

import functools
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from lakelet.jvm.errors import Py4JError
from lakelet.jvm.java_sources import compiled

_NAME = "lakelet.LaterCheckpoint"
_SOURCE = """
package lakelet;

public class LaterCheckpoint extends org.apache.spark.sql.delta.OptimisticTransaction {
  private boolean later = false;

  public LaterCheckpoint(org.apache.spark.sql.delta.DeltaLog log, scala.Option table, scala.Option snapshot) {
    super(log, table, snapshot);
  }

  public void leaveOut() { later = true; }

  public boolean isCheckpointNeeded(long version, org.apache.spark.sql.delta.Snapshot snapshot) {
    return !later && super.isCheckpointNeeded(version, snapshot);
  }

  public static class Begin implements java.util.function.Function {
    public Object apply(Object log) {
      scala.Option none = scala.Option.apply(null);
      return new LaterCheckpoint((org.apache.spark.sql.delta.DeltaLog) log, none, none);
    }
  }
}
"""


def begin(spark: SparkSession, log: Any) -> Any:
    """Begin a transaction on a table, by its DeltaLog; one of Delta's own where the class cannot be made."""
    function = _function(spark.sparkContext)
    return log.startTransaction() if function is None else function.apply(log)


def leave_out(transaction: Any) -> None:
    """Let the commit of a transaction that `begin` began have no checkpoint; one of Delta's own has it."""
    if transaction.getClass().getName() == _NAME:
        transaction.leaveOut()


@functools.lru_cache(maxsize=1)
def _function(context: SparkContext) -> Any:
    """Return the Java function that begins a transaction. What it raises arrives as it was raised; reflection would wrap it."""
    try:
        return compiled(context, _SOURCE).loadClass(f"{_NAME}$Begin").getConstructors()[0].newInstance(None)
    except Py4JError:
        return None


__all__ = ["begin", "leave_out"]
