"""A run from configuration to result: folder, checkpoints, forecast, comparison."""
