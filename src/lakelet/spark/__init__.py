"""Everything that touches the Spark session: launch, clones, patches of pyspark, name resolution, rules, errors."""
