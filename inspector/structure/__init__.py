"""What is in files, field by field: headers, tables, members, tensors, with their bytes."""
