"""The functions by which users communicate between ranks; the operators below them are in ``ops.collectives``."""
