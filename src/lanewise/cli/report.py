"""`lanewise report`: one offline HTML page of a saved run."""

from __future__ import annotations

from lanewise import files
from lanewise.cli import terminal
from lanewise.cli.command import option_group
from lanewise.options.study import ReportOptions


@option_group
def report(options: ReportOptions) -> None:
    """Write the report of a saved run as one HTML page that needs no other file."""
    from lanewise import api
    from lanewise.report.figure import import_charts

    import_charts()
    files.check_writable(options.output)
    terminal.write(options.output, api.render_report(api.load_run(options.run)))
