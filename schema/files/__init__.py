"""Files by their content: which format a file has, the JSON of flatbuffers, models of vendors."""
