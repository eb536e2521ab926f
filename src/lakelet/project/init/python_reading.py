"""Reads a Python source without running it: datasets, reads, paths, parameters, imports. No Spark."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from lakelet.project.init.api_calls import ApiNames, Refuse, argument, check_call, check_format, hooks, kind_of, writes_flow
from lakelet.project.init.findings import (
    CodeLocation,
    DatasetFound,
    FileReading,
    PackageImport,
    ParameterFound,
    PathFound,
    RefusedFeature,
    StrictExpression,
    TableRead,
    UnknownParts,
    is_databricks_path,
    path_found,
)
from lakelet.project.init.python_files import (
    ExpressionReader,
    NameScope,
    PythonFile,
    PythonTree,
    Repository,
    asked_parameter,
    dotted,
    function_scope,
    imported_modules,
    resolved,
)
from lakelet.project.init.sql_reading import databricks_function, names_of, strict_call, strict_texts

_READS = frozenset({"load", "csv", "json", "parquet", "orc", "text", "xml", "textFile", "ls", "head", "forPath"})
_FORMATS = {name: name for name in ("csv", "json", "parquet", "orc", "text", "xml")} | {"forPath": "delta"}
_BY_FUNCTION = ("table", "materialized_view", "view")
_OF_SPARK = ("spark.sql.", "spark.databricks.", "spark.master", "spark.app.")
_DEEPEST = 10
_PATH_ARGUMENTS = ("path", "source_path", "paths")
_NOT_PATHS = frozenset({"comment", "description", "doc"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def read_python(file: PythonFile, reading: FileReading, repository: Repository, holes: UnknownParts) -> None:
    """Add to `reading` what the file says, and what the notebooks say that it runs."""
    if file.broken is not None:
        what, line, cell = file.broken
        reading.refused.append(
            RefusedFeature("SOURCE_FAILED", f"the file does not compile: {what}", repository.location(file.path, line, cell))
        )
    names = ApiNames.of(tree.module for tree in file.trees)
    for tree in file.trees:
        _Visitor(file, tree, reading, repository, holes, names).visit_all(tree.module.body, file.scope, top=True)


class _Visitor:
    """Walks one tree with the scope of each function."""

    def __init__(
        self, file: PythonFile, tree: PythonTree, reading: FileReading, repository: Repository, holes: UnknownParts, names: ApiNames
    ) -> None:
        self.file, self.tree, self.reading, self.repository, self.holes, self.api = file, tree, reading, repository, holes, names
        self.reader = ExpressionReader(holes, self._asked)
        self.guarded = 0
        self.decorators: set[int] = set()
        self.within: list[str] = []

    def visit_all(self, nodes: list[ast.stmt], scope: NameScope, *, top: bool = False) -> None:
        for node in nodes:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                continue  # a docstring
            self.visit(node, scope, top)

    def visit(self, node: ast.AST, scope: NameScope, top: bool) -> None:
        if isinstance(node, _Function):
            self._function(node, scope, top)
        elif isinstance(node, ast.Lambda):
            self.visit(node.body, function_scope(node, scope), False)
        elif isinstance(node, ast.ClassDef):
            inner = NameScope(scope)
            inner.fill(node.body)
            self.visit_all(node.body, inner)
        elif isinstance(node, ast.Try):
            self.guarded += 1
            self.visit_all(node.body, scope, top=top)
            self.guarded -= 1
            self.visit_all([*node.orelse, *node.finalbody, *(s for handler in node.handlers for s in handler.body)], scope, top=top)
        elif isinstance(node, ast.For | ast.While | ast.comprehension):
            self._children(node, scope, False)
        elif isinstance(node, ast.expr) and _puts_together(node):
            self._text(node, scope)
            self._strict(node, scope)
            for part in _parts(node):
                self.visit(part, scope, top)
        else:
            self._one(node, scope, top)
            self._children(node, scope, top)

    def _children(self, node: ast.AST, scope: NameScope, top: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
                continue
            if isinstance(child, ast.keyword) and child.arg in _NOT_PATHS:
                continue
            self.visit(child, scope, top)

    def _one(self, node: ast.AST, scope: NameScope, top: bool) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._imports(node)
        elif isinstance(node, ast.Call):
            self._strict(node, scope)
            self._call(node, scope, top)
        elif isinstance(node, ast.Attribute):
            self._attribute(node)
        elif isinstance(node, ast.Constant):
            self._text(node, scope)

    # --------------------------------------------------------------------------------------------------- declarations

    def _function(self, node: _Function, scope: NameScope, top: bool) -> None:
        before = len(self.reading.datasets)
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            found = self.api.called(call.func if call else decorator)
            if found is not None:
                self.decorators.add(id(decorator))
                self._declared(found, call, node, scope, top)
                check_call(*found, call, node.name, lambda value: self.reader.text(value, scope), self._refuse(decorator))
            self.visit(decorator, scope, top)
        declared = [one.name for one in self.reading.datasets[before:]]
        self.within += declared
        self.visit_all(node.body, function_scope(node, scope))
        del self.within[len(self.within) - len(declared) :]
        for default in [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]:
            self.visit(default, scope, top)

    def _declared(self, found: tuple[str, str], call: ast.Call | None, function: _Function | None, scope: NameScope, top: bool) -> None:
        kind = kind_of(*found)
        self.reading.declares |= kind is not None or writes_flow(found[1])
        self.reading.hooks |= hooks(found[1])
        if kind is None:
            return
        named = argument(call, "name")
        if named is None and function is None and call is not None and call.args and kind not in _BY_FUNCTION:
            named = call.args[0]
        if kind == "table" and function is not None:
            kind = _kind_by_reads(function)
        name = self.reader.text(named, scope) if named is not None else function.name if function else self.holes.token("name")
        computed = self.holes.first_in(name.split(".")[-1]) is not None or (
            named is not None and not top and self.reader.constant(named, scope) is None
        )
        self.reading.incomplete |= computed or not top
        self.reading.datasets.append(DatasetFound(self.holes.shown(name), kind, self._location(function or call), computed))

    # ---------------------------------------------------------------------------------------------------------- calls

    def _call(self, node: ast.Call, scope: NameScope, top: bool) -> None:
        if asked_parameter(node) is not None:
            self.reader.text(node, scope)
        found = self.api.called(node.func)
        if found is not None:
            self._api_call(found, node, scope, top)
            return
        path = dotted(node.func) or ""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else path
        first = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg in _PATH_ARGUMENTS), None)
        if called in ("expr", "selectExpr", "filter", "where") and node.args:
            texts = [self.reader.constant(one, scope) for one in node.args]
            found_in = [one for text in texts if text for one in strict_texts(text)]
            self.reading.strict += [StrictExpression(one.text, one.format, self._location(node)) for one in found_in]
        if path.endswith("conf.set") and node.args:
            key = self.reader.constant(node.args[0], scope)
            self.reading.given |= {key} if key else set()
        if path.startswith("sys.path.") and node.args:
            self.reading.import_paths |= {self.holes.shown(self.reader.text(argument, scope)) for argument in node.args}
        if not isinstance(node.func, ast.Attribute) or first is None:
            return
        chain = _chain(node.func, scope)
        if called == "sql" and (path.split(".")[0] in ("spark", "self") or "spark" in path.lower()):
            self._sql(first, scope)
        elif called in ("table", "forName") and (chain & {"read", "readStream", "spark"} or called == "forName" or "spark" in path.lower()):
            index = 1 if called == "forName" and len(node.args) > 1 else 0
            self._table(node.args[index] if node.args else first, scope)
        elif called == "format" and chain & {"read", "readStream", "write", "writeStream"}:
            self._format(first, scope)
        elif called in _READS and (chain & {"read", "readStream", "sparkContext", "fs", "DeltaTable"}):
            for one in first.elts if isinstance(first, ast.List | ast.Tuple) else [first]:
                self._path(one, scope, named=True, format=_FORMATS.get(called) or self._format_of(node.func, scope))

    def _api_call(self, found: tuple[str, str], node: ast.Call, scope: NameScope, top: bool) -> None:
        name = found[1]
        if name in ("read", "read_stream", "readStream"):
            self._table(node.args[0] if node.args else argument(node, "name"), scope)
            return
        if id(node) not in self.decorators:
            if kind_of(*found) not in _BY_FUNCTION or node.args or argument(node, "query_function") is not None:
                self._declared(found, node, None, scope, top)
            check_call(*found, node, None, lambda value: self.reader.text(value, scope), self._refuse(node))
        source = argument(node, "source")
        if source is not None and self.reader.constant(source, scope):
            self._table(source, scope, into=self.reader.text(argument(node, "target"), scope))
        if name == "create_sink":
            self._format(argument(node, "format") or (node.args[1] if len(node.args) > 1 else None), scope)

    def _attribute(self, node: ast.Attribute) -> None:
        """`dlt.something` that neither module has."""
        module = self.api.module_of(node.value)
        if module is not None and node.attr not in self.api.names(module) and not node.attr.startswith("_"):
            self._refuse(node)("NOT_SUPPORTED_YET", f"{'dlt' if module == 'dlt' else 'pyspark.pipelines'} has no {node.attr} here")

    def _format(self, node: ast.expr | None, scope: NameScope) -> None:
        text = self.reader.constant(node, scope)
        if node is not None and text is not None:
            check_format(text, self._refuse(node))

    def _table(self, node: ast.expr | None, scope: NameScope, *, into: str = "") -> None:
        """A table that is read; `into`: the target of the change flow that does."""
        if node is None:
            return
        text = self.reader.text(node, scope)
        last = text.split(".")[-1]
        self.reading.unresolved |= self._is_open(text)
        if text and not text.startswith("/") and self.holes.first_in(last) is None:
            self.reading.tables.append(TableRead(self.holes.shown(text), self._location(node), self.holes.shown(into) or self._reader()))

    def _reader(self) -> str | None:
        """The dataset whose function is read."""
        return self.within[-1] if self.within else None

    def _sql(self, node: ast.expr, scope: NameScope) -> None:
        text = self.reader.text(node, scope)
        self.reading.unresolved |= self._is_open(text)
        found = names_of(text)
        location = self._location(node)
        for table in found.tables:
            if self.holes.first_in(table.text.split(".")[-1]) is None:
                self.reading.tables.append(TableRead(self.holes.shown(table.text), location, self._reader()))
        self._add_paths(path_found(path.text, self.holes, location, path.format) for path in found.paths)
        self.reading.refused += [databricks_function(one.text, location) for one in found.databricks_functions]
        self.reading.strict += [StrictExpression(one.text, one.format, location) for one in strict_texts(text)]

    def _text(self, node: ast.expr, scope: NameScope) -> None:
        """A path that stands anywhere in the code."""
        if isinstance(node, ast.Constant) and not isinstance(node.value, str):
            return
        text = self.reader.text(node, scope)
        if is_databricks_path(text):
            self._path(node, scope, named=False)

    def _format_of(self, node: ast.expr, scope: NameScope) -> str:
        """The format that a chain of calls names before its `load`."""
        found = ""
        while isinstance(node, ast.Attribute | ast.Call):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                key, value = (self.reader.constant(argument, scope) for argument in (node.args[0], node.args[-1]))
                if node.func.attr == "option" and key is not None and key.lower() == "cloudfiles.format":
                    return value or ""
                if node.func.attr == "format" and key is not None:
                    found = key
            node = node.func if isinstance(node, ast.Call) else node.value
        return "" if found.lower() == "cloudfiles" else found

    def _path(self, node: ast.expr, scope: NameScope, *, named: bool, format: str = "") -> None:
        text = self.reader.text(node, scope)
        self.reading.unresolved |= self._is_open(text)
        if (named or is_databricks_path(text)) and text and "\n" not in text and self.holes.first_in(text) != 0:
            self._add_paths([path_found(text, self.holes, self._location(node), format, read=named)])

    def _is_open(self, text: str) -> bool:
        """Whether a text has parts that are not known and are not parameters."""
        return bool(self.holes.names_in(text) - {one.key for one in self.reading.parameters})

    def _add_paths(self, found: Iterable[PathFound]) -> None:
        for one in found:
            if one not in self.reading.paths:
                self.reading.paths.append(one)

    def _strict(self, node: ast.expr, scope: NameScope) -> None:
        tolerant = strict_call(node, lambda one: self.reader.constant(one, scope))
        if tolerant:
            self.reading.strict.append(StrictExpression(" ".join(ast.unparse(node).split()), tolerant, self._location(node)))

    # ---- imports of modules

    def _imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for _, module in imported_modules(node, self.file.path):
            first = module.split(".")[0]
            there = self.repository.module(module, self.file.path) or self.repository.module(first, self.file.path)
            elsewhere = self.repository.elsewhere(module) if there is None else None
            if there is not None:
                self._helper(node, module, *there)
            elif elsewhere is not None:
                self.reading.helpers.append(elsewhere)
            elif not getattr(node, "level", 0):
                self.reading.imports.append(PackageImport(module, self._location(node), self.guarded > 0))

    def _helper(self, node: ast.Import | ast.ImportFrom, module: str, file: Path, root: Path) -> None:
        self.reading.roots.append(root)
        names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        inner = [self.repository.module(f"{module}.{name}", self.file.path) for name in names]
        self.reading.helpers += [found for found in (file, *(one[0] for one in inner if one)) if found.is_file()]

    # ----------------------------------------------------------------------------------------------------------- rest

    def _asked(self, key: str, default: str | None, node: ast.AST) -> None:
        found = ParameterFound(key, default, self._location(node))
        if found not in self.reading.parameters and not key.startswith(_OF_SPARK):
            self.reading.parameters.append(found)

    def _refuse(self, node: ast.AST) -> Refuse:
        def refuse(code: str, what: str) -> None:
            found = RefusedFeature(code, what, self._location(node))
            if found not in self.reading.refused:
                self.reading.refused.append(found)

        return refuse

    def _location(self, node: ast.AST | None) -> CodeLocation:
        return self.repository.location(self.file.path, getattr(node, "lineno", 1), self.tree.cell)


def _puts_together(node: ast.AST) -> bool:
    """Whether an expression puts a text together from parts."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Add | ast.Div)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr == "joinpath" or dotted(node.func) == "os.path.join" or _formats(node)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Path")


def _formats(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr == "format" and isinstance(node.func.value, ast.Constant)


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of such an expression that are not plain texts, those of expressions in it included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FormattedValue | ast.Attribute) or _puts_together(child):
            yield from _parts(child) if not isinstance(child, ast.Attribute) or child.attr in ("format", "joinpath", "join") else [child]
        elif not isinstance(child, ast.Constant | ast.operator | ast.expr_context):
            yield child


def _chain(node: ast.expr, scope: NameScope, depth: int = 0) -> set[str]:
    """All names of `a.b(…).c`, those of what `a` stands for among them."""
    found: set[str] = set()
    while isinstance(node, ast.Attribute | ast.Call):
        found |= {node.attr} if isinstance(node, ast.Attribute) else set()
        node = node.value if isinstance(node, ast.Attribute) else node.func
    if isinstance(node, ast.Name):
        found.add(node.id)
        known = resolved(node, scope) if depth < _DEEPEST else None
        if known is not None and isinstance(known[1], ast.Call | ast.Attribute):
            found |= _chain(known[1], known[0], depth + 1)
    return found


def _kind_by_reads(function: _Function) -> str:
    """What a table of `dlt.table` is, as far as its function shows."""
    read = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    if read & {"readStream", "read_stream"}:
        return "streaming_table"
    return "materialized_view" if read & {"read", "createDataFrame", "range"} else "table"
