"""Files of a session: mapped, recognised by content, decoded, paired."""
