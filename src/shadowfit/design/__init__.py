"""Which motion to record: information of motions before they are recorded, and the best one within limits."""

from shadowfit.design.design import Design as Design
from shadowfit.design.design import design as design
from shadowfit.design.errors import DesignError as DesignError
from shadowfit.design.limits import Limits as Limits
from shadowfit.design.limits import read_limits as read_limits
from shadowfit.design.settings import Settings as Settings
