"""Parts of `dbutils`: their base with unknown members, refusals and notices; widgets from parameters, secrets from the environment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lakelet.base import secrets
from lakelet.base.errors import LakeletError, nearest_names
from lakelet.base.user_code import caller_location
from lakelet.language.registry import Notice

Note = Callable[[Notice], None]


class UnknownMember(LakeletError, AttributeError):
    """DBUTILS_UNKNOWN; an AttributeError too, so that `hasattr` answers."""


class Group:
    """A part of `dbutils`; asking for what it does not have names what is near."""

    _name = "dbutils"

    def __init__(self, note: Note) -> None:
        self._note = note

    def __getattr__(self, member: str) -> Any:
        if member.startswith("_"):
            raise AttributeError(member)
        known = [name for name in dir(self) if not name.startswith("_")]
        raise UnknownMember(
            "DBUTILS_UNKNOWN",
            f"{self._name} has no {member!r}",
            where=caller_location(),
            nearest=nearest_names(member, known),
            todo=f"Here it has {', '.join(known)}.",
        )

    def __reduce__(self) -> Any:
        raise LakeletError(
            "DBUTILS_REFUSED",
            f"{self._name} is used in a function that runs on Spark's workers",
            why="It is there where the files are loaded only.",
            todo="Ask outside of the function and use the value in it.",
        )

    def help(self, *_: Any) -> None:
        """Shows nothing in a pipeline."""
        self._without_effect("help")

    def _without_effect(self, call: str, why: str = "nothing is shown in a pipeline") -> None:
        self._note(Notice(f"{self._name}.{call} has no effect here: {why}", caller_location()))

    def _refused(self, call: str, why: str, todo: str) -> LakeletError:
        return LakeletError("DBUTILS_REFUSED", f"{self._name}.{call} is not executed", where=caller_location(), why=why, todo=todo)


class Widgets(Group):
    """`dbutils.widgets` of one source file. A value is the argument of the `%run`, else the parameter, else the widget's default."""

    _name = "dbutils.widgets"

    def __init__(self, note: Note, parameters: Mapping[str, str]) -> None:
        super().__init__(note)
        self._parameters = dict(parameters)
        self._defaults: dict[str, str] = {}

    def _given(self, arguments: Mapping[str, str]) -> None:
        self._parameters.update(arguments)

    def text(self, name: str, defaultValue: str = "", label: str | None = None) -> None:
        self._defaults[str(name)] = str(defaultValue)

    def dropdown(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """Raises ARGUMENT_INVALID if the default is none of the choices, as on Databricks."""
        self._choice("dropdown", name, [str(defaultValue)], choices)
        self.text(name, defaultValue)

    def combobox(self, name: str, defaultValue: str, choices: Sequence[str] = (), label: str | None = None) -> None:
        self.text(name, defaultValue)

    def multiselect(self, name: str, defaultValue: str, choices: Sequence[str], label: str | None = None) -> None:
        """The value is text: the chosen ones, joined by commas. Raises ARGUMENT_INVALID if a default is none of the choices."""
        self._choice("multiselect", name, str(defaultValue).split(",") if defaultValue else [], choices)
        self.text(name, defaultValue)

    def get(self, name: str) -> str:
        """Raises WIDGET_UNKNOWN if the widget is not defined and no parameter has its name."""
        if name in self._parameters:
            return self._parameters[name]
        if name in self._defaults:
            return self._defaults[name]
        raise LakeletError(
            "WIDGET_UNKNOWN",
            f"no widget {name!r} is defined, and no parameter has this name",
            where=caller_location(),
            nearest=nearest_names(name, [*self._defaults, *self._parameters]),
            todo=f"Set it in the pipeline's configuration, or with --param {name}=VALUE.",
        )

    def getArgument(self, name: str, defaultValue: str | None = None) -> str:
        """`get`, with a value for the case that there is none."""
        if defaultValue is not None and name not in self._defaults and name not in self._parameters:
            return str(defaultValue)
        return self.get(name)

    def getAll(self) -> dict[str, str]:
        """The defined widgets with their values."""
        return {name: self.get(name) for name in self._defaults}

    def remove(self, name: str) -> None:
        self._defaults.pop(name, None)

    def removeAll(self) -> None:
        self._defaults.clear()

    def _choice(self, kind: str, name: str, defaults: Sequence[str], choices: Sequence[Any]) -> None:
        known = [str(choice) for choice in choices]
        wrong = next((one for one in defaults if one not in known), None)
        if wrong is not None:
            raise LakeletError(
                "ARGUMENT_INVALID",
                f"the default {wrong!r} of the {kind} {name!r} is none of its choices",
                where=caller_location(),
                nearest=nearest_names(wrong, known),
                todo=f"Choices are {', '.join(known) or 'none'}.",
            )


class SecretMetadata(NamedTuple):
    key: str


class Secrets(Group):
    """`dbutils.secrets`: the secrets of the environment (`base.secrets`)."""

    _name = "dbutils.secrets"

    def __init__(self, note: Note, environ: Mapping[str, str]) -> None:
        super().__init__(note)
        self._environ = environ

    def get(self, scope: str, key: str) -> str:
        """Raises SECRET_MISSING with the name of the variable. The value is blotted out in messages from here on."""
        return secrets.secret(scope, key, self._environ, caller_location())

    def getBytes(self, scope: str, key: str) -> bytes:
        return self.get(scope, key).encode()

    def list(self, scope: str) -> list[SecretMetadata]:
        """The keys of a scope as far as variables tell them: in lower case, with `_` for other signs."""
        prefix = secrets.variable(scope, "")
        return [SecretMetadata(name.removeprefix(prefix).lower()) for name in sorted(self._environ) if name.startswith(prefix)]

    def listScopes(self) -> Any:
        """Raises DBUTILS_REFUSED: names of variables do not tell where the scope ends."""
        raise self._refused(
            "listScopes", "Variables of the environment do not tell scopes.", "Name the scope: dbutils.secrets.list(SCOPE)."
        )
