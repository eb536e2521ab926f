"""For tests of pipeline code: load one file, call its functions on small data frames. Fixtures are in `plugin`."""

from lakelet.testing.loading import PipelineFunctions, load_file

__all__ = ["PipelineFunctions", "load_file"]
