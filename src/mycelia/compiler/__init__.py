"""From a graph to something that runs: passes, lowering to XLA, executables."""
