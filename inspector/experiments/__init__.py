"""Many runs of one question: gates, sweeps, bisections."""
