"""Snakemake's logger plugin `castmates`: Snakemake's usual messages, until a workflow hands over its own display.

Snakemake imports this for every workflow of an environment, before it reads the Snakefile. Therefore nothing of
castmates is imported here: the Snakefile chooses which copy of it runs.
"""

import sys
from logging import Handler, LogRecord
from typing import Any

from snakemake_interface_logger_plugins.base import LogHandlerBase

OPENING = (
    "castmates_display"  # the attribute of the record with what makes the display: shown with its progress, or not
)


class LogHandler(LogHandlerBase):
    """Shows records in the usual way, or has the workflow's display show them."""

    def __post_init__(self) -> None:
        """Make the usual handler, as Snakemake does where no plugin is chosen."""
        from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter

        settings = self.common_settings
        self._usual: Handler = ColorizingTextHandler(
            nocolor=settings.nocolor,
            stream=sys.stdout if settings.stdout else sys.stderr,
            formatter=DefaultFormatter(settings.quiet, settings.show_failed_logs),
            filter=DefaultFilter(
                settings.quiet, settings.debug_dag, settings.verbose, settings.dryrun, settings.printshellcmds
            ),
        )
        self._display: Any = None

    def emit(self, record: LogRecord) -> None:
        """Show a record; a display that fails is not asked again."""
        try:
            shown = self._show(record)
        except Exception:  # nothing may depend on a display
            self._close_display()
            self.handleError(record)
            shown = False
        if not shown:
            self._usual.handle(record)

    def _show(self, record: LogRecord) -> bool:
        """Have the display show a record, where there is one; whether it did."""
        if make := getattr(record, OPENING, None):
            self._display = make("PROGRESS" not in self._quiet) if self._may_be_replaced() else None
            return True
        return self._display is not None and self._display.emit(record)

    def _may_be_replaced(self) -> bool:
        """Whether neither Snakemake's own messages nor silence was asked for."""
        settings = self.common_settings
        words = settings.dryrun or settings.verbose or settings.debug_dag or settings.printshellcmds
        return not words and "ALL" not in self._quiet

    @property
    def _quiet(self) -> set[str]:
        return {choice.name for choice in self.common_settings.quiet or ()}

    def _close_display(self) -> None:
        display, self._display = self._display, None
        if display is not None:
            display.close()

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._close_display()
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        """It takes the place of Snakemake's messages on standard error."""
        return True

    @property
    def writes_to_file(self) -> bool:
        """Snakemake keeps its own log file."""
        return False

    @property
    def has_filter(self) -> bool:
        """The usual handler has one; a display sees everything."""
        return True

    @property
    def has_formatter(self) -> bool:
        """The usual handler has one."""
        return True

    @property
    def needs_rulegraph(self) -> bool:
        """Not needed."""
        return False
