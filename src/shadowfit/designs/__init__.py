"""Which motion to record: information of motions before they are recorded, and the best one within limits."""

from shadowfit.designs.design import Design as Design
from shadowfit.designs.design import design as design
from shadowfit.designs.errors import DesignError as DesignError
from shadowfit.designs.limits import Limits as Limits
from shadowfit.designs.limits import rated as rated
from shadowfit.designs.limits import read_limits as read_limits
from shadowfit.designs.settings import DesignSettings as DesignSettings
