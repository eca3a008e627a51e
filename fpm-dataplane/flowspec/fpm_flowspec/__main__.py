# SPDX-License-Identifier: BSD-3-Clause
"""The command line of fpm-flowspec."""

import argparse
import json
import os
import shlex
import sys

from .helper import Options
from .session import relay, run
from .speaker import speak
from .table import NftError, Table

DEFAULT = Options()


def arguments():
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="fpm-flowspec", description="BGP flow specifications (RFC 8955, 8956) as an nft table."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("run", help="run ExaBGP, and keep the nft table up to date")
    serve.add_argument(
        "--no-validate", action="store_true",
        help="accept flow specifications of any peer without a check (RFC 8955, 6)",
    )  # fmt: skip
    serve.add_argument(
        "--stale-time", type=float, default=DEFAULT.stale_s, metavar="S",
        help="seconds for which rules stay after the session is lost (default %(default)s)",
    )  # fmt: skip
    serve.add_argument(
        "--recheck", type=float, default=DEFAULT.recheck_s, metavar="S",
        help="seconds between checks against the unicast routes (default %(default)s)",
    )  # fmt: skip
    serve.add_argument(
        "--max-rules", type=int, default=DEFAULT.max_rules, metavar="N",
        help="largest number of nft rules (default %(default)s)",
    )  # fmt: skip
    serve.add_argument(
        "--max-flows", type=int, default=DEFAULT.max_flows, metavar="N",
        help="largest number of flow specifications; others wait (default %(default)s)",
    )  # fmt: skip
    serve.add_argument(
        "--share", type=int, default=DEFAULT.share, metavar="PERCENT",
        help="part of both numbers that one neighboring AS may have (default %(default)s)",
    )  # fmt: skip
    serve.add_argument("--vtysh", default="vtysh", help="command that starts vtysh")
    serve.add_argument(
        "--exabgp", default=" ".join(DEFAULT.exabgp), help="command that starts ExaBGP (%(default)s)"
    )
    copy = commands.add_parser("relay", help="copy events to `run`; ExaBGP starts it")
    speaker = commands.add_parser("speaker", help="run ExaBGP without its decoder; `run` starts it")
    speaker.add_argument("exabgp", nargs=argparse.REMAINDER, help="the program and its arguments")
    show = commands.add_parser("show", help="list the flow specifications and their states")
    show.add_argument("--json", action="store_true", help="print JSON")
    commands.add_parser("flush", help="empty the table")
    for each in (serve, show, copy):
        each.add_argument(
            "--folder", default=DEFAULT.folder,
            help="folder of status.json, summary.json and of the pipe (default %(default)s)",
        )  # fmt: skip
    return parser


class Damaged(ValueError):
    """The status file is not one that `run` of this version writes."""


def show(path, as_json):
    """Print the status file."""
    with open(path, encoding="utf-8") as file:
        try:
            status = json.load(file)
            lines = list(rows(status))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as why:
            raise Damaged(
                f"{path} is damaged, or of another version: run `systemctl restart fpm-flowspec`"
            ) from why
    output(json.dumps(status) if as_json else "\n".join(lines))


def rows(status):
    """Yield the lines about the status."""
    for peer, state in status["sessions"].items() or [("none", "down")]:
        yield f"Session   {peer} {state}"
    yield f"Table     {status['table']} {'loaded' if status['loaded'] else status['error']}"
    if status["frr_error"]:
        yield f"FRR       {status['frr_error']}"
    if status["waiting"]:
        yield f"Waiting   {status['waiting']} flow specifications, because there are too many"
    for row in status["flows"]:
        about = row["reason"] if row["state"] == "refused" else row["action"]
        yield f"ipv{row['family']}  {row['state']:9}  {row['match']}: {about}"


def output(text):
    """Print a text. A reader that has read enough is no error."""
    try:
        print(text, flush=True)
    except OSError as why:
        # Python would write the rest at its end, and fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(why, BrokenPipeError):
            raise


def main():
    """Run a command. Returns the exit code."""
    args = arguments().parse_args()
    try:
        if args.command == "flush":
            Table().flush()
        elif args.command == "show":
            show(Options(folder=args.folder).status, args.json)
        elif args.command == "speaker":
            speak(args.exabgp)
        elif args.command == "relay":
            relay(args.folder)
        else:
            return run(
                Options(
                    validate=not args.no_validate,
                    stale_s=args.stale_time,
                    recheck_s=args.recheck,
                    max_rules=args.max_rules,
                    max_flows=args.max_flows,
                    share=args.share,
                    folder=args.folder,
                    vtysh=shlex.split(args.vtysh),
                    exabgp=shlex.split(args.exabgp),
                )
            )
    except (NftError, OSError, ValueError) as why:
        print(f"fpm-flowspec: {why}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
