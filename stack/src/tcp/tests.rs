//! Two stacks over a simulated network.
