"""What kernels say when a function cannot be written out."""


class TooLargeError(ValueError):
    """A program with more operations than are worth writing out."""


class SlowerWarning(UserWarning):
    """A part of a model that XLA computes, many times slower, since it cannot be written out."""


class UnsupportedError(ValueError):
    """A program that cannot be written out: a loop of unknown length, an index that depends on data, …

    ``operation`` names the primitive of JAX that is to blame, where there is one.
    """

    def __init__(self, message: str, operation: str | None = None) -> None:
        super().__init__(message)
        self.operation = operation
