"""The errors and warnings that labeldp raises; every error is a ``ValueError``."""


class LabelDPError(ValueError):
    """Base of all errors of this package."""


class ParameterError(LabelDPError):
    """A parameter (ε, δ, bounds, ζ, a prior …) cannot be used; the message says what to give."""


class LabelError(LabelDPError):
    """The labels cannot be used. The message never contains a label."""


class NotUnbiasedError(LabelDPError):
    """The channel has no unbiased label."""


class PrivacyProofError(LabelDPError):
    """The exact proof failed: these counts do not keep their promise."""


class CardError(LabelDPError):
    """A card is damaged, tampered with, or of an unknown kind."""


class UncheckableError(CardError):
    """A card names what is not known here, so that nobody can say here whether it holds."""


class ConformanceError(LabelDPError):
    """A mechanism does not keep the contract; the message says which part, and what to do."""


class BudgetError(LabelDPError):
    """The ledger's limit would be passed; nothing was spent or released."""


class LedgerError(LabelDPError):
    """A ledger file is damaged, was changed, or cannot be written."""


class DataError(LabelDPError):
    """A data set's file is damaged, or not the file expected. The message never contains a label."""


class DataNotFoundError(FileNotFoundError, DataError):
    """A data set's file is not here and could not be fetched; the message says how to get it."""


class MissingExtraError(ImportError, LabelDPError):
    """A package that only some of the library needs is not installed; the message names the extra."""


class RepeatedReleaseWarning(UserWarning):
    """The same labels are about to be released again, and paid for again."""


class RawLabelWarning(UserWarning):
    """Something around a private estimator sees the labels themselves, and has no ε at all."""


class InsecureRandomnessWarning(UserWarning):
    """A seed was given: results can be repeated, by an attacker too."""
