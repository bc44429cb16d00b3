"""Prints, for each engine and kind, the rows and sums of the files of an archive as text. Arguments: the folder, the columns as JSON.

A file of history begins with the values in effect at the start of its day: they are rows of earlier days.
"""

import json
import sys

DAY_US = 86_400_000_000
folder, kinds = sys.argv[1], json.loads(sys.argv[2])


def pattern(kind):
    return f"{folder}/{kind}/*/*/*.parquet"


def of_duckdb(kind, decimals, time, history=False):
    import duckdb

    sums = ", ".join(f"CAST(sum({name}) AS VARCHAR)" for name in decimals)
    query = f"""SELECT count(*), {sums}{"," if sums else ""} sum(epoch_us({time}) % {DAY_US}), min(epoch_us({time})), max(epoch_us({time}))
        FROM read_parquet('{pattern(kind)}', hive_partitioning = true) {"WHERE NOT in_effect" if history else ""}"""
    return duckdb.execute(query).fetchone()


def of_polars(kind, decimals, time, history=False):
    import polars

    micros = polars.col(time).dt.timestamp("us")
    frame = polars.scan_parquet(pattern(kind), hive_partitioning=True)
    if history:
        frame = frame.filter(~polars.col("in_effect"))
    frame = frame.select(
        polars.len().alias("rows"),
        *[polars.col(name).sum() for name in decimals],
        (micros % DAY_US).sum().alias("micros"),
        micros.min().alias("first"),
        micros.max().alias("last"),
    )
    return frame.collect().row(0)


def of_pandas(kind, decimals, time, history=False):
    import glob

    import pandas
    import pyarrow

    # The usual types of pandas round decimals.
    read = [pandas.read_parquet(path, dtype_backend="pyarrow") for path in sorted(glob.glob(pattern(kind)))]
    frame = pandas.concat(read)
    if history:
        frame = frame[~frame["in_effect"]]
    micros = frame[time].astype(pandas.ArrowDtype(pyarrow.int64())).astype("int64")
    return [len(frame), *[frame[name].sum() for name in decimals], (micros % DAY_US).sum(), micros.min(), micros.max()]


def of_chdb(kind, decimals, time, history=False):
    import chdb

    sums = "".join(f"toString(sum({name})), " for name in decimals)
    micros = f"toUnixTimestamp64Micro({time})"
    query = f"""SELECT count(), {sums} sum({micros} % {DAY_US}), min({micros}), max({micros})
        FROM file('{pattern(kind)}', Parquet) {"WHERE NOT in_effect" if history else ""} FORMAT JSONCompactEachRow"""
    return json.loads(str(chdb.query(query)))


ENGINES = {"DuckDB": of_duckdb, "Polars": of_polars, "pandas with pyarrow": of_pandas, "chdb": of_chdb}


def text(value):
    return format(value, "f") if hasattr(value, "as_tuple") else str(value)


print(
    json.dumps(
        {
            engine: {kind: [text(value) for value in read(kind, **columns)] for kind, columns in kinds.items()}
            for engine, read in ENGINES.items()
        }
    )
)
