"""The bridge to the JVM: everything that Lakelet asks of Spark, Delta and Hadoop in Java where pyspark has no public way.

Nothing outside of this package touches private attributes of pyspark or imports py4j. Callers get Java's objects (plans, expressions, log
actions), walk them by their public methods, and hand them back. `docs/decisions/0085-one-bridge.md` has a row for each function: what it
reaches, why, since which version, and what happens without it.
"""
