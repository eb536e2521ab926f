"""Typed columns from `jsonPayload`, the struct that grows as services add fields. Helpers only: no dataset is defined here."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, FractionalType, MapType, NumericType, StructType

INTEGERS = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT")

Fields = dict[str, tuple[tuple[str, ...], DataType]]


def payload_fields(rows: DataFrame) -> Fields:
    """The fields that `jsonPayload` has so far, by lower-case name: where each lies, and the type that was inferred for it.

    A nested field goes by its path joined with `_`: `exception_class` is `exception.class`.
    """
    payload = {field.name: field.dataType for field in rows.schema.fields}.get("jsonPayload")
    return _flattened(("jsonPayload",), payload) if isinstance(payload, StructType) else {}


def payload_column(fields: Fields, name: str, wanted: str) -> Column:
    """Field `name` as type `wanted`. NULL where no entry has brought the field yet, and where a value does not cast."""
    if name.lower() not in fields:
        return F.lit(None).cast(wanted).alias(name)
    path, found = fields[name.lower()]
    value = F.col(path[0])
    for step in path[1:]:
        value = value.getField(step)
    return _cast(value, found, wanted).alias(name)


def _flattened(path: tuple[str, ...], struct: StructType) -> Fields:
    own: Fields = {}
    nested: Fields = {}
    for field in struct.fields:
        here = (*path, field.name)
        own["_".join(here[1:]).lower()] = (here, field.dataType)
        if isinstance(field.dataType, StructType):
            nested.update(_flattened(here, field.dataType))
    return {**nested, **own}  # where both exist, the field that really has the name wins over a joined one


def _cast(value: Column, found: DataType, wanted: str) -> Column:
    """`value` as `wanted`; what it becomes does not hang on the type that inference found in the first files.

    (A field whose first files mix types is inferred as STRING, one with whole numbers only as BIGINT, one with fractions as DOUBLE.)
    """
    if isinstance(found, (StructType, ArrayType, MapType)):
        return value.try_cast(wanted) if "<" in wanted else F.to_json(value).try_cast(wanted)
    if not isinstance(found, NumericType) or wanted.upper().startswith(("DATE", "TIMESTAMP")):
        return value.cast("string").try_cast(wanted)
    if isinstance(found, FractionalType) and wanted.upper() in INTEGERS:
        return F.when(value == F.floor(value), value).try_cast(wanted)
    return value.try_cast(wanted)
