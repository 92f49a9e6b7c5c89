"""From torch.export to program bytes: edge dialect, passes, partition, plan, emission."""
