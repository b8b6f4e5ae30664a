"""Hold the one error of the gate: a data file that a person has to mend."""


class GateDataError(ValueError):
    """A data set or a references file cannot be used as it is.

    The message is one line that names the file, the line where there is one, and the remedy.
    A model's answer never raises this: a bad answer is a wrong answer.
    """
