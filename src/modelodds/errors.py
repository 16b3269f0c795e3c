"""Every error the library raises on purpose: one root, each child also the builtin it refines."""


class ModelOddsError(Exception):
    """Root of the library's errors."""


class PriorError(ModelOddsError, ValueError):
    """A prior that is improper, discrete, mis-shaped or otherwise unusable."""


class ModelError(ModelOddsError, ValueError):
    """A model, or a list of models, that cannot be compared."""


class OptionError(ModelOddsError, ValueError):
    """An unknown or impossible option."""


class BudgetError(ModelOddsError, ValueError):
    """A budget too small for what was asked."""


class QueryError(ModelOddsError, KeyError):
    """A query that is not known, or no longer open."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, quotes and all; a sentence should read as one.
        return Exception.__str__(self)


class ResultError(ModelOddsError, ValueError):
    """A result, or a file holding one, that cannot be read."""


class ProblemError(ModelOddsError, ValueError):
    """A benchmark problem that does not exist, or whose ground truth is not known."""


class LedgerError(ModelOddsError, ValueError):
    """A ledger that cannot be read, or is not of these models."""


class LedgerInUse(LedgerError):
    """A ledger that another process is writing."""


class StudyError(ModelOddsError, ValueError):
    """A study's file that does not say what it must; the message has the line."""


class CommandError(ModelOddsError, RuntimeError):
    """An external program that gave no log-likelihood."""


class SpectrumError(ModelOddsError, ValueError):
    """A spectrum, or the null model to read it by, that cannot be used."""
