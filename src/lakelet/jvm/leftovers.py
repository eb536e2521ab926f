"""What a command leaves in a Java process that it has used: what can be removed is, for the rest the process has to end."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil

from lakelet.jvm.environment import replace_variables, variables

_OF_DEFAULTS = "-default.xml"
"""How the names of Hadoop's files of defaults end, which are loaded when a class needs them."""


@dataclass
class Leftovers:
    """Of one Spark process, seen from the session that owns it. A process that does not answer is one to end.

    `of` notes how the process is before any code of a pipeline runs in it; `unlike` compares before each command, and notes what is
    there; `cleaned` removes what is there beside it afterwards.
    """

    session: Any
    _context_before: tuple[str, ...] = ()
    _settings: Any = None
    _kept: Any = None
    _processes: frozenset[int] = frozenset()
    _own: Any = None
    _warehouse: str = ""
    _variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, session: Any) -> Leftovers:
        found = cls(session)
        session._jsparkSession.sharedState()  # sets where the warehouse is
        found._context_before = found._of_context()
        found._settings, found._variables = found._hadoop(), variables(session.sparkContext)
        found._own, found._warehouse = session._jsparkSession, session.conf.get("spark.sql.warehouse.dir")
        return found

    def unlike(self) -> str | None:
        """What code has changed for the whole process since it started; None where it is as it was, for a command to begin."""
        from lakelet.jvm.errors import Py4JError

        try:
            if self._of_context() != self._context_before:
                return "code of the pipeline has given files or settings to all of Spark"
            if self._other_hadoop():
                return "code of the pipeline has changed Hadoop's configuration"
            self._kept = self.session._jvm.java.util.HashSet(self._bindings().keySet())
            self._processes = frozenset(child.pid for child in self._children())
        except (Py4JError, OSError, psutil.Error):
            return "Java does not answer"
        return None

    def cleaned(self) -> str | None:
        """Remove what the command has left; why the process has to end where that is not possible."""
        from lakelet.jvm.errors import Py4JError

        try:
            left = self._left()
            if left is None:
                self._clean()
            return left
        except (Py4JError, OSError, psutil.Error) as problem:
            return f"it could not be made ready for the next command ({type(problem).__name__})"

    def _left(self) -> str | None:
        context = self.session.sparkContext
        if context._jsc.sc().isStopped():
            return "a command has stopped Spark"
        theirs = self._default()
        queries = theirs is not None and not theirs.sharedState().activeStreamingQueries().isEmpty()
        if queries or not context._jsc.sc().dagScheduler().activeJobs().isEmpty():
            return "a command has left queries running"
        return None

    def _clean(self) -> None:
        jvm, context = self.session._jvm, self.session.sparkContext._jsc.sc()
        replace_variables(self.session.sparkContext, self._variables)
        theirs = self._default()
        if theirs is not None and not theirs.equals(self._own):
            listener = theirs.sharedState().statusStore().listener()
            if listener.isDefined():
                context.listenerBus().removeListener(listener.get())
        getattr(jvm, "org.apache.spark.sql.classic.SparkSession").setDefaultSession(self._own)
        shared = getattr(jvm, "org.apache.spark.sql.internal.SharedState")
        shared.setWarehousePathConf(context.conf(), context.hadoopConfiguration(), self._warehouse)
        persisted = self.session.sparkContext._jsc.getPersistentRDDs().values()
        for rdd in persisted:
            rdd.unpersist(False)
        self._bindings().keySet().retainAll(self._kept)
        for child in self._children():
            if child.pid not in self._processes:
                with suppress(psutil.Error):
                    child.terminate()

    def _default(self) -> Any:
        found = getattr(self.session._jvm, "org.apache.spark.sql.classic.SparkSession").getDefaultSession()
        return found.get() if found.isDefined() else None

    def _bindings(self) -> Any:
        from py4j.java_gateway import JavaObject

        server = JavaObject("GATEWAY_SERVER", self.session.sparkContext._gateway._gateway_client)
        return server.getGateway().getBindings()

    def _children(self) -> list[psutil.Process]:
        return psutil.Process(self.session.sparkContext._gateway.proc.pid).children()

    def _of_context(self) -> tuple[str, ...]:
        jvm, context = self.session._jvm, self.session.sparkContext._jsc.sc()
        texts = (context.listFiles(), context.listJars(), context.listArchives(), context.getCheckpointDir())
        zone, locale = jvm.java.util.TimeZone.getDefault().getID(), jvm.java.util.Locale.getDefault()
        return (*(str(text.toString()) for text in (*texts, locale)), str(zone))

    def _hadoop(self) -> Any:
        return self.session.sparkContext._jsc.hadoopConfiguration().getPropsWithPrefix("")

    def _other_hadoop(self) -> bool:
        """Whether a setting of Hadoop is another one than at the start; defaults that were loaded since then do not count."""
        configuration, now = self.session.sparkContext._jsc.hadoopConfiguration(), self._hadoop()
        if now.equals(self._settings):
            return False
        gone = self.session._jvm.java.util.HashSet(self._settings.keySet())
        gone.removeAll(now.keySet())
        if not gone.isEmpty():
            return True
        other = self.session._jvm.java.util.HashMap(now)
        other.entrySet().removeAll(self._settings.entrySet())
        for name in list(other.keySet()):
            sources = configuration.getPropertySources(name)
            if sources is None or not str(list(sources)[-1]).endswith(_OF_DEFAULTS):
                return True
        self._settings = now
        return False


__all__ = ["Leftovers"]
