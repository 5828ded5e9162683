"""A question on the command line: which command the flags mean, and one search from start to end."""

from __future__ import annotations

import click

from nexi.cli.exits import Interrupts, exit_unless_answered
from nexi.cli.flags import AskFlags
from nexi.config import nexi_home
from nexi.output import answer_json, print_json, write


def dispatch_question(words: tuple[str, ...], flags: AskFlags) -> None:
    """Take the first of: config commands, history commands, argument, --query-text, stdin, prompt."""
    # each way imports what it needs: `nexi --last` must not wait for what a search loads
    if flags.edit_config:
        from nexi.cli.settings import edit_config

        return edit_config()
    if flags.show_config:
        return write(f"{nexi_home() / 'config.json'}\n")
    if flags.history.is_set:
        from nexi.cli.history import run_history_flags

        return run_history_flags(flags.history, flags.output)
    from nexi.cli.runner import read_question

    question = read_question(" ".join(words) or flags.query_text)
    if question is None and not words:
        if flags.files:
            raise click.UsageError('--file needs a question: nexi -f notes.md "what did we decide"')
        from nexi.cli.repl import _interactive_mode

        return _interactive_mode(flags)
    question = question or ""
    if flags.is_research:
        from nexi.cli.research import run_research
        from nexi.cli.templates import apply_template

        return run_research(apply_template(question, flags), flags)
    return _run_search_command(question, flags)


def _run_search_command(question: str, flags: AskFlags) -> None:
    from nexi.cli import delivery
    from nexi.cli.runner import follow_run, load_terminal_config, open_screen, run_request, run_with_nexi, warn_without_model
    from nexi.cli.templates import apply_template

    output = flags.output
    config = load_terminal_config(output)
    question = apply_template(question, flags)
    path, vault = delivery.output_path(output), delivery.chosen_vault(config, output)
    screen = open_screen(output, stream=not path and not output.is_references)
    with Interrupts(as_json=output.as_json) as interrupts:
        request = run_request(flags, question)
        warn_without_model(config, request.model)
        result = run_with_nexi(lambda nexi: follow_run(nexi.run(request), screen, interrupts), config)
        if path:
            delivery.write_answer(path, result, question, output)
            screen.sum_up(result)
        elif output.is_references:
            write(delivery.reference_text(result.answer.sources, output.form))
            screen.sum_up(result)
        elif not output.as_json:
            screen.finish(result)
        report = delivery.save_answer_report(result, vault) if output.save else None
        if output.as_json and not path and not output.is_references:
            answer = answer_json(result, question)
            print_json({**answer, "report": str(report)} if report else answer)
        if output.copy:
            delivery.copy_answer(result)
        if not output.as_json:
            delivery.print_next_steps(result)
    exit_unless_answered(result)
