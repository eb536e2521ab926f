"""Words of the workspace that Lakelet reads."""

from __future__ import annotations

from lakelet.base.text_enum import TextEnum


class PipelineState(TextEnum):
    """States of a pipeline in a workspace that matter here: in these it starts nothing by itself."""

    IDLE = "IDLE"
    FAILED = "FAILED"
    DELETED = "DELETED"
