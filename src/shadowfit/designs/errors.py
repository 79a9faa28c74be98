"""The error of a wish that no motion fulfils."""

from shadowfit.errors import ShadowfitError


class DesignError(ShadowfitError):
    """An experiment that cannot be designed."""
