"""The documented devtools API: Inspector, events, ETRecord, comparisons, sizes, memory traces."""
