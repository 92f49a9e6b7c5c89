"""A flatbuffer engine driven by declarative field tables: checked reader, writer, walker."""
