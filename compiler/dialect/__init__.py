"""The edge dialect: operators and their schemas, out variants, delegate calls, copies of graphs."""
