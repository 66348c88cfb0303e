"""Commands for the journal of a service: backup, export, migrate, move, replay, verify, erase."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from superarm.cli.options import AsJson, CustomLearner, Force, JournalArgument, OlderThan, erased_before
from superarm.cli.output import check_output, print_counts, print_json
from superarm.errors import InvalidInput, Unquoted

NOT_COMPARED = "decisions not compared (erased, or their model cannot be rebuilt)"

if TYPE_CHECKING:
    from superarm.journal.replay import ReplayResult
    from superarm.journal.verify import VerifyResult


def backup(
    journal: JournalArgument,
    to: Annotated[Path, Argument(help="The copy to make: a new file.")],
    as_json: AsJson = False,
) -> None:
    """Copy a journal as of one moment, and verify the copy.

    Example: **superarm backup events.db /backup/monday.db**
    """
    from superarm.journal.backends import is_postgres
    from superarm.journal.backup import backup as copy_journal

    if is_postgres(journal):
        wanted = "a file: a database is backed up by its own pg_dump, or by its replicas (docs/scale.md)"
        raise InvalidInput.must("JOURNAL", "superarm backup", wanted, Unquoted("a database"))
    result = copy_journal(journal, to)
    if as_json:
        counts = {"events": result.events, "snapshots": result.snapshots}
        print_json({"journal": journal, "to": to, **counts})
    else:
        print(f"{result.events:,} events, {result.snapshots} snapshots in {to}, verified")


def export(
    journal: JournalArgument,
    output: Annotated[Path, Option(help="The file to write: .parquet, .jsonl, .csv or .tsv.")],
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write the whole decision log, for `superarm train` and `superarm evaluate`.

    Example: **superarm export events.db --output log.parquet**
    """
    from superarm.data.tables import TABLES
    from superarm.journal.backends import open_store
    from superarm.journal.export import export as write_log

    check_output(output, "export", force=force, endings=TABLES)
    with closing(open_store(journal, read_only=True)) as opened:
        written, erased = write_log(opened, output)
    if as_json:
        print_json({"journal": journal, "output": output, "decisions": written, "erased": erased})
    else:
        print(f"{written:,} decisions written to {output}")
        print_counts((erased, "decisions left out, since their features were erased"))


def migrate(
    journal: Annotated[str, Argument(help="The journal: a file that no service runs on, or postgresql://….")],
) -> None:
    """Bring a journal to today's format; there is no older one that can be read.

    In PostgreSQL: make the tables, in one transaction, for a role that may not make them itself.

    Example: **superarm migrate events.db**
    """
    from superarm.journal.backends import is_postgres, open_store

    if is_postgres(journal):
        from superarm.journal.postgres_connection import Address
        from superarm.journal.postgres_schema import make_tables
        from superarm.journal.statements import FORMAT

        address = Address(journal)
        new = make_tables(address)
        print(f"{address} is of format {FORMAT}" + (" now" if new else " already"))
        return
    open_store(journal, read_only=True).close()  # refuses other formats
    print(f"{journal} is of today's format already")


def move(
    journal: Annotated[Path, Argument(help="The SQLite journal; no service may be running on it.")],
    to: Annotated[str, Argument(help="postgresql://user@host/name, a database without a journal.")],
    learner: CustomLearner = None,
    as_json: AsJson = False,
) -> None:
    """Copy all events, kept snapshots and the model to a database, in one transaction.

    The file stays as it is. The service goes on with `superarm serve --journal postgresql://…`.

    Example: **superarm move events.db postgresql://operate@db/arms**
    """
    from superarm.journal.backends import is_postgres, journal_name

    if not is_postgres(to):
        raise InvalidInput.must("TO", "superarm move", "an address such as postgresql://user@host/name", to)
    from superarm.journal.move import move as copy_to_database

    count = copy_to_database(journal, to, learner=learner, progress=not as_json)
    if as_json:
        print_json({"journal": journal, "to": journal_name(to), "events": count})
    else:
        print(f"{count:,} events of {journal} are in {journal_name(to)} now")


def replay(
    journal: JournalArgument,
    output: Annotated[Path | None, Option(help="Write the rebuilt model to this file.")] = None,
    force: Force = False,
    from_start: Annotated[bool, Option(help="Start with the first event.")] = False,
    learner: CustomLearner = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the model from a journal, and compare on the way.

    It starts from the oldest kept snapshot before the last event, or from the first event. Every decision is made
    again and must come out as it was shown, and every later snapshot must come out the same. Last bits may differ on
    another kind of CPU; if more differs, or if there was nothing to compare, the exit status is 1.

    Example: **superarm replay events.db --output model.npz**
    """
    from superarm.journal.backends import open_store
    from superarm.journal.replay import replay as replay_events

    check_output(output, "replay", force=force)
    began = perf_counter()
    with closing(open_store(journal, read_only=True)) as store:
        result = replay_events(store, from_start=from_start, learner=learner, progress=not as_json)
    seconds = perf_counter() - began
    if output is not None:
        result.learner.save(output)
    if as_json:
        figures = {
            field.name: getattr(result, field.name) for field in fields(result) if field.name != "learner"
        }
        verdict = {"different": result.different, "same": result.same, "sound": result.ok}
        print_json({"journal": journal, **figures, **verdict, "seconds": seconds})
    else:
        _print_replay(result, seconds, output)
    if not result.compared:
        wider = "the journal has too few events"
        if result.unchecked:
            wider = "the content of its decisions was erased"
        elif result.start:
            wider = "--from-start compares all events"
        print(f"superarm: nothing was compared: {wider}", file=sys.stderr)
    if not result.ok:
        sys.exit(1)


def _print_replay(result: ReplayResult, seconds: float, output: Path | None) -> None:
    print(f"replayed {result.events:,} events after event {result.start:,} in {seconds:.1f} s")
    print(f"decisions compared: {result.decisions:,}, different: {result.different:,}")
    if result.different:
        print(
            f"  another set {result.sets_differ:,}, another propensity {result.propensities_differ:,}, "
            f"last bits only {result.last_bits_differ:,}"
        )
    if result.unchecked:
        print(f"{NOT_COMPARED}: {result.unchecked:,}")
    print(f"later snapshots compared: {result.snapshots:,}, different: {len(result.snapshots_different):,}")
    if result.snapshots_near:
        print(f"  the same but for rounding: {len(result.snapshots_near):,}")
    if result.snapshots_loaded:
        print(f"stretches with erased events, passed by loading a snapshot: {len(result.snapshots_loaded):,}")
    print(f"model: sha256 {result.sha256}" + (f", written to {output}" if output else ""))


def verify(
    journal: JournalArgument,
    learner: CustomLearner = None,
    replay: Annotated[bool, Option(help="Also replay all events, and compare every snapshot.")] = True,
    accept_loss: Annotated[
        bool, Option("--accept-loss", help="Let a journal go on that has lost its last events.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every event, snapshot and index of a journal; the exit status is 1 if any is damaged.

    Example: **superarm verify events.db**
    """
    from superarm.journal.backends import is_postgres
    from superarm.journal.verify import accept_loss as forget_lost_events
    from superarm.journal.verify import verify as verify_journal

    if accept_loss:
        if is_postgres(journal):
            wanted = "left out: what a database has lost, its own backup has"
            raise InvalidInput.must("--accept-loss", "superarm verify", wanted, True)
        durable, left = forget_lost_events(journal)
        print(f"{durable:,} events were durable; {journal} goes on after {left:,}", file=sys.stderr)
    began = perf_counter()
    result = verify_journal(journal, learner=learner, with_replay=replay, progress=not as_json)
    seconds = perf_counter() - began
    if as_json:
        replayed = result.replayed
        report = {
            "journal": journal,
            "events": result.events,
            "erased": result.erased,
            "snapshots": result.snapshots,
            "problems": result.problems,
            "warnings": result.warnings,
            "damaged_events": result.damaged,
            "replayed": None if replayed is None else replayed.events,
            "compared": None if replayed is None else replayed.decisions,
            "unchecked": None if replayed is None else replayed.unchecked,
            "sound": result.ok,
            "seconds": seconds,
        }
        print_json(report)
    else:
        _print_verification(result, seconds)
    if not result.ok:
        sys.exit(1)


def _print_verification(result: VerifyResult, seconds: float) -> None:
    print(f"{result.events:,} events, {result.snapshots} snapshots: {seconds:.1f} s")
    if result.erased:
        print(f"features and context of {result.erased:,} decision{'s' * (result.erased != 1)} erased")
    for warning in result.warnings:
        print(f"warning: {warning}")
    for problem in result.problems:
        print(f"damaged: {problem}")
    replayed = result.replayed
    if replayed is not None and replayed.unchecked:
        print(f"{NOT_COMPARED}: {replayed.unchecked:,}")
    if result.ok and replayed is not None and replayed.decisions:
        print(f"intact, and the replay agrees: {replayed.decisions:,} decisions")
    elif result.ok:
        print("intact" if replayed is None else "intact; the replay had no decision to compare with")


def erase(
    journal: Annotated[str, Argument(help="The journal; no service may be running on it.")],
    id_: Annotated[list[str] | None, Option("--id", help="A decision's id; may be repeated.")] = None,
    older: OlderThan = None,
    trust_clock: Annotated[
        bool, Option("--trust-clock", help="Erase by the clock, however far it is from the last event.")
    ] = False,
    learner: CustomLearner = None,
    as_json: AsJson = False,
) -> None:
    """Erase features and context of decisions, in the journal; what is left still verifies.

    Of a running service, use its route; of old decisions in general, `superarm serve --retain 90d`.

    Example: **superarm erase events.db --id letter-17**
    """
    from superarm.journal.backends import is_postgres
    from superarm.journal.changes import Erase
    from superarm.service import Service

    if is_postgres(journal):
        wanted = "a file: of a shared journal, use the route of any process (superarm change URL erase)"
        raise InvalidInput.must("JOURNAL", "superarm erase", wanted, Unquoted("a database"))
    before = erased_before(older, id_, "superarm erase", "--id")
    service = Service.open(journal, create=False, learner=learner, trust_clock=trust_clock)
    try:
        if service.outage is not None:
            raise service.outage
        if older is not None and service.follower.clock_problem is not None:
            wrong, _, _ = service.follower.clock_problem.partition(":")
            wanted = "given when the clock is right, or with --trust-clock"
            raise InvalidInput.must("--older", "superarm erase", wanted, Unquoted(wrong))
        erasure = Erase(ids=id_ or None, before=before)
        count = service.follower.n_erased(service.call(erasure))
    finally:
        service.close()
    problem = service.follower.erasure_problem
    if as_json:
        print_json({"journal": journal, "erased": count, "finished": problem is None})
    else:
        print(f"features and context of {count:,} decision{'s' * (count != 1)} erased")
    if problem is not None:
        print(f"superarm: not finished: {problem}; the next start goes on", file=sys.stderr)
        sys.exit(1)
