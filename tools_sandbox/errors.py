"""The exceptions of the sandbox, one for each kind of remedy."""


class SandboxFault(Exception):
    """Base of every error that this package raises. Its text is one line."""


class InvalidRequest(SandboxFault, ValueError):
    """The caller's workspace, command, limit or time-out can't be used; correct it."""


class SandboxUnavailable(SandboxFault):
    """The tier asked for can't run on this machine; the text names the remedy.

    Never answered by a weaker tier: that is the caller's decision.
    """


class SandboxStopped(SandboxFault):
    """`Sandbox.stop` ended the command or came before it: no failure of either."""


class SandboxError(SandboxFault):
    """The sandbox itself failed while it ran a command.

    Distinct from a command that fails, which is a `Result` with its exit code. The text must not
    be shown to a model as a command's output.
    """
