"""The event log: what an update did, in the shape of the hosted service (dlt-semantics section 4)."""
