"""Parameters and states that make the discrete equations of motion and the measurements agree, and how sure we are."""

from shadowfit.estimation.fit import fit as fit
from shadowfit.estimation.problem.error_model import ErrorModel as ErrorModel
from shadowfit.estimation.problem.options import Options as Options
from shadowfit.estimation.problem.parameter import Free as Free
from shadowfit.estimation.result import Estimate as Estimate
from shadowfit.estimation.result import ParameterEstimate as ParameterEstimate
from shadowfit.estimation.solve.levenberg_marquardt import LevenbergMarquardt as LevenbergMarquardt
from shadowfit.estimation.solve.levenberg_marquardt import Status as Status
