"""What a run is asked to do: options, configuration, seeds, who takes part."""
