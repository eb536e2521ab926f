"""One front door per method of pyspark: the method is replaced once, and what happens behind it is a list of steps.

    sql:  note_top_level_call → register_functions → answer_listing → name_parameters → name_frames → resolve_names
          → convert_text_paths → the method of pyspark

A step gets a call and may change its arguments, or it stands around the rest: it may call the rest several times, or answer itself.
`all_patches` lists all doors with their steps. Nothing here needs Spark.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from lakelet.base.patching import Patch
from lakelet.base.user_code import PACKAGE


@dataclass(frozen=True)
class Call:
    """One call of a method.

    Attributes:
        method: the name of the method or function.
        target: the object or class that the method is called on; None for a function of a module.
        arguments: what the caller gave, by the names of the parameters; `*paths` is a tuple, `**options` a dict.
        update: the session of the update.
        caller: the frame that calls the method.
    """

    method: str
    target: Any
    arguments: Mapping[str, Any]
    update: Any
    caller: FrameType | None

    def get(self, name: str, default: Any = None) -> Any:
        """Return the argument of a parameter; `default` where the caller gave none."""
        return self.arguments.get(name, default)

    def changed(self, **arguments: Any) -> Call:
        """Return the call with other arguments."""
        return replace(self, arguments={**self.arguments, **arguments})

    @property
    def by_lakelet(self) -> bool:
        """Whether code of Lakelet calls the method."""
        return self.caller is not None and self.caller.f_code.co_filename.startswith(PACKAGE)

    @property
    def by_pyspark(self) -> bool:
        """Whether code of pyspark calls the method."""
        return self.caller is not None and str(self.caller.f_globals.get("__name__", "")).partition(".")[0] == "pyspark"


Rest = Callable[[Call], Any]
"""The steps after one step, and the method itself."""


@dataclass(frozen=True)
class DoorStep:
    """One step behind a door.

    Attributes:
        name: what the step is called in the list.
        why: what it is for.
        before: returns the call that goes on, as it is or with other arguments; may raise.
        around: returns the result of the call, with the rest or without it. A step has either `before` or `around`.
    """

    name: str
    why: str
    before: Callable[[Call], Call] | None = None
    around: Callable[[Call, Rest], Any] | None = None


def before(why: str) -> Callable[[Callable[[Call], Call]], DoorStep]:
    """Make a step of a function from a call to the call that goes on."""
    return lambda function: DoorStep(function.__name__, why, before=function)


def around(why: str) -> Callable[[Callable[[Call, Rest], Any]], DoorStep]:
    """Make a step of a function that calls the rest itself."""
    return lambda function: DoorStep(function.__name__, why, around=function)


def run(call: Call, steps: Sequence[DoorStep], method: Rest) -> Any:
    """Pass a call through the steps in their order, and then to the method; return the result."""
    for at, step in enumerate(steps):
        if step.around is not None:
            return step.around(call, lambda changed, rest=steps[at + 1 :]: run(changed, rest, method))  # type: ignore[misc]
        assert step.before is not None
        call = step.before(call)
    return method(call)


@dataclass(frozen=True)
class Door:
    """A method that is replaced, and the steps behind it, the first one first.

    `owner`, `name` and `since` are those of `Patch`.
    """

    owner: str
    name: str
    since: str
    steps: tuple[DoorStep, ...]

    def patch(self) -> Patch:
        """Return the replacement; the context of its set is the session of the update."""
        return Patch(self.owner, self.name, self._replacement, "; ".join(step.why for step in self.steps), self.since)

    def _replacement(self, original: Any, update: Any) -> Any:
        steps, name, has_target = self.steps, self.name, inspect.isclass(self.patch().owned_by())
        whole = inspect.signature(original)
        signature = whole.replace(parameters=list(whole.parameters.values())[has_target:])

        def call(*args: Any, **kwargs: Any) -> Any:
            target, rest = args[:has_target], args[has_target:]
            try:
                given = signature.bind(*rest, **kwargs)
            except TypeError:
                return original(*args, **kwargs)  # Python names the argument that is wrong

            def method(last: Call) -> Any:
                passed = inspect.BoundArguments(signature, dict(last.arguments))
                return original(*target, *passed.args, **passed.kwargs)

            return run(Call(name, next(iter(target), None), given.arguments, update, sys._getframe(1)), steps, method)

        return call


def doors(owner: str, names: Mapping[str, str], *steps: DoorStep) -> list[Door]:
    """Return a door with the same steps for each method of a class. `names`: the version that added each method, by its name."""
    return [Door(owner, name, since, steps) for name, since in names.items()]
