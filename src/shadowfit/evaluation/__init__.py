"""Results of fits: on disk, checked against data that they have not seen, and as a page to read."""

from shadowfit.evaluation.report import write_report as write_report
from shadowfit.evaluation.store import SavedResult as SavedResult
from shadowfit.evaluation.store import load_result as load_result
from shadowfit.evaluation.store import save_estimate as save_estimate
from shadowfit.evaluation.validation import Validation as Validation
from shadowfit.evaluation.validation import validate as validate
