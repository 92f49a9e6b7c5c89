"""The interface between methods and backends."""
