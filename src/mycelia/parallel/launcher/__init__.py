"""The commands ``mycelia-run`` and ``msrun``: start ranks on one machine or several, watch them, start them again.

One launcher runs on each machine. It is one thread around a selector, so that nothing in it needs a lock:

- ``options``: the command line;
- ``environment``: the variables and cores of a rank;
- ``crew``: the ranks of this machine, each in a process group of its own (``guard`` ends them if the launcher dies);
- ``supervisor``, ``host``, ``guest``: what happens when; the launcher of node 0 is the host of the others;
- ``wire``: messages between launchers, one JSON text a line;
- ``display``: the status line, the ranks' output, messages.
"""
