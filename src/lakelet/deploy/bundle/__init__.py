"""The files of a bundle, read for a deployment: what should be in the workspace, and what is wrong with the files."""

from lakelet.deploy.bundle.assembly import TargetLocation, desired_state, location_of, workspace_of
from lakelet.deploy.bundle.references import LOOKUP_KINDS, Lookup

__all__ = ["LOOKUP_KINDS", "Lookup", "TargetLocation", "desired_state", "location_of", "workspace_of"]
