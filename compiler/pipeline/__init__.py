"""From exported programs to a program file: lowering, delegation, previews, and the managers."""
