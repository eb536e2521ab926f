"""The code that a dataset's function consists of, as digests of its parts: the function, what it calls, the values that it names. No Spark.

In: a function of the user's. Out: a digest by the name of each part, such as `clean (lib/names.py)` or `RATE (pipeline.py)`. Python counts
by its syntax tree and SQL by its tokens: comments, docstrings, blanks and line numbers change no digest, and neither does another Python.
"""

from __future__ import annotations

import ast
import dis
import enum
import functools
import hashlib
import linecache
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path, PurePath
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from lakelet.base.user_code import PACKAGE, is_library
from lakelet.language.sql_text.tokens import plain_tokens

_DEPTH = 12
"""Values inside of values are followed this far."""
_IGNORED_FIELDS = frozenset({"ctx", "kind", "type_comment"})
_EXACT = ("builtins", "datetime", "decimal", "fractions", "uuid", "re", "zoneinfo")
"""Modules whose values show all that they are by `repr`."""
_GLOBALS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_CONFIGURATION = frozenset({"conf", "widgets"})
_PLACES = frozenset({"where", "start"})
"""Fields that say where something was written."""


def digest(text: str) -> str:
    """A short digest of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def sql_digest(text: str) -> str:
    """The digest of SQL text by its tokens."""
    return digest("\0".join(text[token.start : token.stop] for token in plain_tokens(text)))


@dataclass
class FunctionCode:
    """Parts of one dataset's code.

    Attributes:
        parts: digest by the name of the part.
        texts: the texts that the code contains, among them names of configuration and of SQL functions.
        reads_configuration: it uses `spark.conf` or widgets.
    """

    parts: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    reads_configuration: bool = False

    def add(self, label: str, text: str) -> None:
        """Add a part. Two parts of one name, as of functions that a loop makes, become one."""
        found = digest(text)
        self.parts[label] = found if self.parts.get(label, found) == found else digest(self.parts[label] + found)

    def names(self, word: str) -> bool:
        """Whether one of the texts contains a word."""
        pattern = re.compile(rf"(?<![\w.]){re.escape(word)}(?![\w])", re.IGNORECASE)
        return any(pattern.search(text) for text in self.texts)


@dataclass(frozen=True)
class ProjectCode:
    """The code of one project.

    Args:
        root: its folder; names of parts are relative to it.
        files: source files and imported modules, in which SQL functions may be registered.
    """

    root: Path
    files: Sequence[str] = ()
    _trees: dict[str, _ModuleTree | None] = field(default_factory=dict)
    _codes: dict[CodeType, _CodeNames] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)

    def of(self, functions: Iterable[Callable[..., Any]]) -> FunctionCode:
        """The code of some functions together, that of the SQL functions that they name included."""
        found = FunctionCode()
        for function in functions:
            _Walk(self, found).dataset(function)
        for name, (label, text) in self._registered.items():
            if found.names(name):
                found.add(label, text)
        return found

    def tree(self, file: str) -> _ModuleTree | None:
        """The syntax tree of a Python file; None for what is not one."""
        if file not in self._trees:
            linecache.checkcache(file)
            try:
                self._trees[file] = _ModuleTree.of("".join(linecache.getlines(file)))
            except (SyntaxError, ValueError, RecursionError):
                self._trees[file] = None
        return self._trees[file]

    def shown(self, file: str) -> str:
        """A file as it is named in a part: relative to the project where it lies below it."""
        if file not in self._shown:
            path = PurePath(file)
            self._shown[file] = path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.name
        return self._shown[file]

    def names(self, code: CodeType) -> _CodeNames:
        """What code names."""
        if code not in self._codes:
            self._codes[code] = _CodeNames(_global_names(code), _attribute_names(code), _constants(code))
        return self._codes[code]

    def relative(self, text: str) -> str:
        """A text in which the folder of the project has no name: another checkout has another one."""
        return text.replace(str(self.root), "<project>")

    @functools.cached_property
    def _registered(self) -> dict[str, tuple[str, str]]:
        """By name of a function that SQL may call: the name of its part, and its code."""
        found = {}
        for file in self.files:
            tree = self.tree(file) if file.endswith(".py") else None
            for name, text in tree.registered if tree is not None else ():
                found[name] = (f"{name} ({self.shown(file)})", text)
        return found


# ------------------------------------------------------------------------------------------------------------------- syntax trees


@dataclass(frozen=True)
class _CodeNames:
    """What a code object names: values of its module, attributes of objects, texts."""

    of_module: Sequence[str]
    attributes: set[str]
    texts: Sequence[str]


@dataclass(frozen=True)
class _ModuleTree:
    """The functions and classes of a module by line and name, and the statements that give each name of the module its value."""

    module: ast.Module
    definitions: Mapping[tuple[int, str], list[ast.AST]]
    statements: Mapping[str, list[ast.stmt]]
    calls: Sequence[ast.Call]
    _texts: dict[tuple[int, str, bool], str] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> _ModuleTree:
        """Raises SyntaxError or ValueError."""
        module = ast.parse(text)
        definitions: dict[tuple[int, str], list[ast.AST]] = {}
        statements: dict[str, list[ast.stmt]] = {}
        calls = []
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                definitions.setdefault((line, node.name), []).append(node)
            elif isinstance(node, ast.Lambda):
                definitions.setdefault((node.lineno, "<lambda>"), []).append(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.startswith("register"):
                calls.append(node)
        for statement in module.body:
            for name in _bound_names(statement):
                statements.setdefault(name, []).append(statement)
        return cls(module, definitions, statements, calls)

    def text(self, line: int, name: str, *, decorators: bool) -> str:
        """The functions of a name that begin in a line, as text; empty if there are none."""
        key = line, name, decorators
        if key not in self._texts:
            nodes = self.definitions.get((line, name), ())
            self._texts[key] = "".join(canonical(node, decorators=decorators) for node in nodes)
        return self._texts[key]

    @property
    def registered(self) -> Iterator[tuple[str, str]]:
        """Name and code of each function that `spark.udf.register("name", function)` registers."""
        for node in self.calls:
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            if isinstance(owner, ast.Attribute) and owner.attr in ("udf", "udtf") and node.args and isinstance(node.args[0], ast.Constant):
                yield str(node.args[0].value), canonical(node) + self.behind(_loaded_names(node))

    def behind(self, names: Iterable[str]) -> str:
        """The statements of the module that give these names their values, and the names that those use."""
        pending, seen, found = list(names), set[str](), list[str]()
        while pending:
            name = pending.pop(0)
            if name in seen:
                continue
            seen.add(name)
            for statement in self.statements.get(name, ()):
                found.append(canonical(statement))
                pending += _loaded_names(statement)
        return "".join(found)


def _bound_names(statement: ast.stmt) -> set[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _loaded_names(node: ast.AST) -> list[str]:
    return list(dict.fromkeys(one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)))


def canonical(node: Any, *, decorators: bool = True) -> str:
    """A syntax tree as text, without positions and docstrings: equal for code that does the same by the same statements."""
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__}:{node.value!r}"
    if isinstance(node, list):
        return f"[{','.join(canonical(one) for one in node)}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    values = []
    for name, value in ast.iter_fields(node):
        if name in _IGNORED_FIELDS or value is None or value == [] or (name == "decorator_list" and not decorators):
            continue
        if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            value = value[1:] if ast.get_docstring(node, clean=False) is not None else value
        values.append(f"{name}={canonical(value)}")
    return f"{type(node).__name__}({','.join(values)})"


# ------------------------------------------------------------------------------------------------------------------- values


@dataclass
class _Walk:
    """Follows one function to all that its result may depend on in the project's code."""

    project: ProjectCode
    found: FunctionCode
    _seen: set[int] = field(default_factory=set)
    _kept: list[object] = field(default_factory=list)  # so that no id is given twice

    def dataset(self, function: Callable[..., Any]) -> None:
        """Add the parts of a dataset's own function, whose decorators declare the dataset and are compared as settings and rules."""
        if self._sql(function):
            return
        while hasattr(function, "__wrapped__") and is_library(getattr(getattr(function, "__code__", None), "co_filename", "")):
            function = function.__wrapped__
        self._value(function, 0, own=True)

    def _sql(self, function: Any) -> bool:
        """Add the query of a SQL dataset; return whether the function is one."""
        text = getattr(function, "__dict__", {}).get("sql")
        if text is None:
            return False
        declared = vars(function).get("declared_with", ())
        tokens = [text[token.start : token.stop] for token in plain_tokens(text)]
        label = f"the query ({self.project.shown(function.__code__.co_filename.partition('#')[0])})"
        self.found.add(label, "\0".join([*tokens, *map(str, (self._value(one, 1) for one in declared))]))
        self.found.texts.append(" ".join(tokens))
        return True

    def _value(self, value: Any, depth: int, *, own: bool = False) -> str:
        """A text that is another one where the value is another one; code that the value consists of is added to the parts."""
        if isinstance(value, str):
            self.found.texts.append(value)
            return repr(self.project.relative(value))
        if isinstance(value, PurePath):
            return self.project.relative(str(value))
        if depth > _DEPTH:
            return _type_name(value)
        if isinstance(value, enum.Enum):
            return str(value)
        if isinstance(value, dict):
            return f"{{{','.join(f'{self._value(k, depth + 1)}:{self._value(v, depth + 1)}' for k, v in list(value.items()))}}}"
        if isinstance(value, list | tuple):
            return f"[{','.join(self._value(one, depth + 1) for one in list(value))}]"
        if isinstance(value, set | frozenset):
            return f"{{{','.join(sorted(self._value(one, depth + 1) for one in value))}}}"
        if type(value).__module__ in _EXACT and not isinstance(value, type) and not callable(value):
            return repr(value)
        if id(value) in self._seen:
            return _type_name(value)
        self._seen.add(id(value))
        self._kept.append(value)
        return self._code_or_object(value, depth, own=own)

    def _code_or_object(self, value: Any, depth: int, *, own: bool) -> str:
        if isinstance(value, FunctionType):
            return self._function(value, depth, own=own)
        if isinstance(value, MethodType):
            return self._value(value.__func__, depth + 1) + self._value(value.__self__, depth + 1)
        if isinstance(value, functools.partial):
            return "partial" + self._value((value.func, value.args, value.keywords), depth + 1)
        if isinstance(value, type):
            return self._class(value, depth)
        if isinstance(value, ModuleType):
            return value.__name__
        if type(value).__module__ == "pyspark.sql.types" and hasattr(value, "json"):
            return str(value.json())
        if type(value).__module__.startswith("pyspark.sql.") and type(value).__name__ == "Column":
            return str(value)
        wrapped = getattr(value, "__wrapped__", None) or (getattr(value, "func", None) if hasattr(value, "returnType") else None)
        if wrapped is not None:
            return self._value(wrapped, depth + 1)
        if is_dataclass(value):
            shown = {one.name: getattr(value, one.name, None) for one in fields(value) if one.name not in _PLACES}
            return self._value(type(value), depth + 1) + self._value(shown, depth + 1)
        if _is_own(type(value)) and hasattr(value, "__dict__"):
            return self._value(type(value), depth + 1) + self._value(vars(value), depth + 1)
        return _type_name(value)

    def _function(self, function: FunctionType, depth: int, *, own: bool) -> str:
        code = function.__code__
        closure = list(zip(code.co_freevars, function.__closure__ or (), strict=True))
        if is_library(code.co_filename) or code.co_filename.startswith(PACKAGE):
            held = [self._value(_content(cell), depth + 1) for _, cell in closure]
            return "|".join([f"{function.__module__}.{function.__qualname__}", *held])
        if function.__dict__.get("sql") is not None:
            self._sql(function)
            return "sql"
        text = [self._text(code, own=own)]
        text += [f"{name}={self._value(_content(cell), depth + 1)}" for name, cell in closure]
        text += [self._value(given, depth + 1) for given in (function.__defaults__, function.__kwdefaults__) if given]
        wrapped = getattr(function, "__wrapped__", None)
        text += [self._value(wrapped, depth + 1)] if wrapped is not None else []
        names = self.project.names(code)
        for name in names.of_module:
            if name in function.__globals__:
                text.append(f"{name}={self._global(name, function.__globals__, code, depth)}")
        self.found.reads_configuration |= not _CONFIGURATION.isdisjoint(names.attributes)
        self.found.texts += names.texts
        label = f"{function.__qualname__.replace('<locals>.', '')} ({self.project.shown(code.co_filename.partition('#')[0])})"
        self.found.add(label, "|".join(text))
        return label

    def _text(self, code: CodeType, *, own: bool) -> str:
        tree = self.project.tree(code.co_filename)
        text = tree.text(code.co_firstlineno, code.co_name, decorators=not own) if tree is not None else ""
        return text or _byte_code(code)

    def _global(self, name: str, module: Mapping[str, Any], code: CodeType, depth: int) -> str:
        """What a function names of its module. A value that is not code is a part of its own."""
        value = module[name]
        if isinstance(value, ModuleType):
            if _is_own_file(getattr(value, "__file__", None)):
                used = sorted(self.project.names(code).attributes & vars(value).keys())
                return ",".join(f"{one}={self._global(one, vars(value), code, depth + 1)}" for one in used) if depth < _DEPTH else name
            return value.__name__
        text = self._value(value, depth + 1)
        if isinstance(value, FunctionType | type | MethodType):
            return text
        file = str(module.get("__file__") or code.co_filename.partition("#")[0])
        if text == _type_name(value):
            tree = self.project.tree(file)
            assigned = tree.behind([name]) if tree is not None else ""
            if not assigned:  # given to the module, such as the session
                return text
            text += assigned
        if not callable(value) and not type(value).__module__.startswith("pyspark"):
            self.found.add(f"{name} ({self.project.shown(file)})", text)
            return name
        return text

    def _class(self, value: type, depth: int) -> str:
        name = f"{value.__module__}.{value.__qualname__}"
        if not _is_own(value):
            return name
        found = [self._value(base, depth + 1) for base in value.__bases__]
        for key, one in vars(value).items():
            if key.startswith("__") and not callable(one):
                continue
            one = one.fget if isinstance(one, property) else getattr(one, "__func__", one)
            found.append(f"{key}={self._value(one, depth + 1)}")
        return f"{value.__qualname__}:{'|'.join(found)}"


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _type_name(value: Any) -> str:
    return f"<{type(value).__module__}.{type(value).__qualname__}>"


def _is_own(found: type) -> bool:
    """Whether a class is of the user's code."""
    functions = [one for one in vars(found).values() if isinstance(one, FunctionType)]
    files = {one.__code__.co_filename for one in functions} - {"<string>"}
    return any(_is_own_file(file) for file in files) if files else is_dataclass(found) and found.__module__.partition(".")[0] != "lakelet"


def _is_own_file(file: str | None) -> bool:
    return file is not None and not is_library(file)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those of the functions inside of it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _global_names(code: CodeType) -> list[str]:
    """The names of the module that code uses, in their order."""
    found = (i.argval for one in _codes(code) for i in dis.get_instructions(one) if i.opname in _GLOBALS)
    return sorted({str(name) for name in found})


def _attribute_names(code: CodeType) -> set[str]:
    return {name for one in _codes(code) for name in one.co_names}


def _constants(code: CodeType) -> list[str]:
    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple | frozenset):
            for one in value:
                yield from texts(one)

    return [text for one in _codes(code) for constant in one.co_consts for text in texts(constant)]


def _byte_code(code: CodeType) -> str:
    """Code whose text is not known, as in cells of Jupyter notebooks."""
    found = []
    for one in _codes(code):
        constants = [repr(constant) for constant in one.co_consts if not isinstance(constant, CodeType)]
        found.append("|".join([one.co_code.hex(), *one.co_names, *one.co_varnames, *constants]))
    return "".join(found)


__all__ = ["FunctionCode", "ProjectCode", "canonical", "digest", "sql_digest"]
