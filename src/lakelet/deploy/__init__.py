"""From a project folder to a Databricks workspace: plan, deploy, run, watch, compare, roll back."""
