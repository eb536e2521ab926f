"""Variables of the environment that differ between terminals and say nothing about what a command does."""

from __future__ import annotations

VOLATILE = frozenset(
    (
        *(
            "_",
            "SHLVL",
            "OLDPWD",
            "PWD",
            "TERM",
            "TERM_PROGRAM",
            "TERM_PROGRAM_VERSION",
            "TERM_SESSION_ID",
            "COLORTERM",
            "COLUMNS",
            "LINES",
        ),
        *("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "LS_COLORS", "WINDOWID", "VTE_VERSION", "TMUX", "TMUX_PANE", "STY"),
        *("SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "SSH_AUTH_SOCK", "GPG_TTY", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_SESSION_ID"),
        *("INVOCATION_ID", "JOURNAL_STREAM", "PYTEST_CURRENT_TEST", "WT_SESSION", "ITERM_SESSION_ID", "KITTY_WINDOW_ID"),
    )
)
"""Code that names one of them gets no quick answer (IF-6)."""

__all__ = ["VOLATILE"]
