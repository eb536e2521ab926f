"""Finds code in a pipeline's sources that depends on what cannot be compared later: clock, random numbers, machine, generated code.

Python's audit events show which files are read, but neither calls of the clock nor what a compiled library does. So the code is parsed,
and everything that is not known to be harmless is a stale reason: a reason why an idle answer is refused. It costs a start of Spark.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Set

SPARK = frozenset({"pyspark", "dlt", "delta", "lakelet", "databricks"})
"""Packages whose functions describe queries: what these read is found in their plans."""
HARMLESS = frozenset(
    (
        *("__future__", "abc", "array", "ast", "base64", "binascii", "bisect", "builtins", "calendar", "codecs", "collections", "colorsys"),
        *("configparser", "contextlib", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch", "fractions"),
        *("functools", "glob", "graphlib", "gzip", "hashlib", "heapq", "html", "importlib", "inspect", "io", "ipaddress", "itertools"),
        *("json", "keyword", "locale", "logging", "math", "numbers", "operator", "os", "pathlib", "pkgutil", "posixpath", "pprint", "re"),
        *("reprlib", "shlex", "statistics", "string", "struct", "sys", "textwrap", "tomllib", "types", "typing", "unicodedata", "unittest"),
        *("urllib", "uuid", "warnings", "weakref", "xml", "zipfile", "zlib", "zoneinfo"),
        *("typing_extensions", "yaml", "numpy", "pandas"),
    )
)
"""Other modules that read files through Python's own functions only, which audit events show, or not at all."""
_CLOCK = (
    *("now", "today", "utcnow", "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"),
    *("localtime", "gmtime", "ctime", "asctime"),
)
_CURRENT_TIMES = ("now", "today")
"""Texts that pandas and numpy take for the current time."""
_RANDOM = ("random", "randint", "choice", "choices", "sample", "shuffle", "uuid1", "uuid4", "urandom", "default_rng", "getrandom")
_MACHINE = (
    *("getpid", "getppid", "getlogin", "gethostname", "getnode", "uname", "getuid", "cpu_count", "getloadavg", "argv", "stdin", "isatty"),
    *("get_terminal_size", "input", "getpass", "platform", "flags", "getrefcount", "modules", "orig_argv"),
)
_FILE_FACTS = ("access", "statvfs", "fstat", "disk_usage", "readlink", "urlopen")
_GENERATED_CODE = (
    *("exec", "eval", "__import__", "import_module", "reload", "exec_module"),
    *("find_spec", "run_path", "run_module", "getsource"),
)
_BUILT_IN = ("exec", "eval", "__import__", "input", "__loader__", "__spec__")
_SESSION = (
    *("sparkContext", "_sc", "_jvm", "_jsc", "_jsparkSession", "_jdf"),
    *("catalog", "DeltaTable", "newSession", "streams", "addArtifact"),
)
_COMPILED_READERS = (
    *("read_parquet", "read_feather", "read_orc", "read_hdf", "read_excel", "read_sql", "read_sql_query", "read_sql_table", "read_spss"),
    *("ExcelFile", "HDFStore", "memmap", "fromfile"),
)
_SEPARATOR = "_"
"""A variable that shells set, and a text of nearly every program: it counts where the source reads the environment at all."""
_OF_ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb", "expandvars"})
NOT_COMPARABLE = frozenset((*_CLOCK, *_RANDOM, *_MACHINE, *_FILE_FACTS, *_GENERATED_CODE, *_SESSION, *_COMPILED_READERS))
"""Names of attributes and functions whose results cannot be compared later."""


def stale_reasons_of(source: str, file: str, *, known: Set[str] = frozenset(), volatile: Set[str] = frozenset()) -> Iterator[str]:
    """Yield each stale reason of a Python source as `file:line …`.

    Args:
        known: top-level names of the user's own modules, whose sources are checked too.
        volatile: names of environment variables that are not compared.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        yield f"{file} is not plain Python"
        return
    of_spark, fields = frozenset(_names_of_spark(tree)), frozenset(_fields(tree))
    if not _reads_environment(tree):
        volatile = volatile - {_SEPARATOR}
    for node in ast.walk(tree):
        if _is_own_field(node, fields):
            continue
        text = _of_import(node, known) or _of_name(node, of_spark, volatile)
        if text:
            yield f"{file}:{getattr(node, 'lineno', 1)} {text}"


def _reads_environment(tree: ast.AST) -> bool:
    names = (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None) for node in ast.walk(tree))
    imported = (alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names)
    return not _OF_ENVIRONMENT.isdisjoint((*names, *imported))


def _names_of_spark(tree: ast.AST) -> Iterator[str]:
    """Yield the names that imports from Spark's packages bind, such as `F` of `from pyspark.sql import functions as F`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in SPARK:
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.asname for alias in node.names if alias.asname and alias.name.partition(".")[0] in SPARK)


def _fields(tree: ast.AST) -> Iterator[str]:
    """Yield the names of fields that classes of the source declare, such as `time` of a dataclass."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (
                one.target.id
                for one in node.body
                if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id not in _SESSION
            )


def _is_own_field(node: ast.AST, fields: Set[str]) -> bool:
    """Return whether this is `self.NAME` of a declared field: its value comes from code that is checked, too."""
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in fields


def _of_import(node: ast.AST, known: Set[str]) -> str | None:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        modules = [node.module or ""]
    else:
        return None
    unknown = [name for name in modules if name.partition(".")[0] not in SPARK | HARMLESS | known]
    return f"imports {unknown[0]}" if unknown else None


def _of_name(node: ast.AST, of_spark: Set[str], volatile: Set[str]) -> str | None:
    if isinstance(node, ast.Attribute) and node.attr in NOT_COMPARABLE:
        owned = isinstance(node.value, ast.Name) and node.value.id in of_spark
        return None if owned and node.attr not in _SESSION else f"uses {node.attr}"
    if isinstance(node, ast.Name) and node.id in _BUILT_IN:
        return f"uses {node.id}"
    if isinstance(node, ast.ImportFrom):
        found = [alias.name for alias in node.names if alias.name in NOT_COMPARABLE or (alias.name == "*" and not node.level)]
        spark = (node.module or "").partition(".")[0] in SPARK
        found = [name for name in found if not spark or name in _SESSION]
        return f"uses {found[0]}" if found else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and (node.value in volatile or node.value.lower() in _CURRENT_TIMES):
        return f"names {node.value}"
    return _of_call(node) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def _of_call(node: ast.Call) -> str | None:
    """Return the stale reason of a call that reads names; for `getattr` with a literal name, that name decides."""
    function = node.func.id if isinstance(node.func, ast.Name) else ""
    if function not in ("getattr", "compile", "globals", "vars"):
        return None
    name = node.args[1] if function == "getattr" and len(node.args) > 1 else None
    if isinstance(name, ast.Constant):
        return f"uses {name.value}" if name.value in NOT_COMPARABLE else None
    return f"calls {function}"


def is_plain(file: str) -> bool:
    """Return whether the code of a source file can be parsed; that of a Jupyter notebook cannot."""
    return file.endswith((".py", ".sql"))


def is_standard(module: str) -> bool:
    """Return whether a module belongs to Python's standard library."""
    return module.partition(".")[0] in sys.stdlib_module_names
