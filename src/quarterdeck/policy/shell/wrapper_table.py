"""Programs that run other programs: how each of them parses its words. Only data.

`wrappers` finds the command in them.
"""

from __future__ import annotations

from quarterdeck.domain.structs import Value


class Wrapper(Value):
    """How a wrapper parses its words."""

    values: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()
    skipped: int = 0
    """Operands before the command: a duration, a host, a folder."""

    transparent: bool = False
    sets: bool = False
    """Takes `NAME=value` before the command."""

    unknown_dir: bool = False
    """The command runs in a folder, or on a machine, that we do not know."""

    open_ended: bool = False
    joined: bool = False
    """The rest is one text for a shell."""

    subcommands: frozenset[str] = frozenset()
    """The command follows only after one of these: `poetry run`."""


def _wrapper(
    values: str = "", flags: str = "", *, subcommands: str = "", skipped: int = 0, **more: bool
) -> Wrapper:
    return Wrapper(
        values=frozenset(values.split()),
        flags=frozenset(flags.split()),
        subcommands=frozenset(subcommands.split()),
        skipped=skipped,
        **more,
    )


WRAPPERS = {
    "timeout": _wrapper(
        "-s --signal -k --kill-after",
        "-v --verbose --preserve-status --foreground -f -p",
        skipped=1,
        transparent=True,
    ),
    "gtimeout": _wrapper("-s -k", "-v --foreground", skipped=1, transparent=True),
    "time": _wrapper("", "-p", transparent=True),
    "nice": _wrapper("-n --adjustment", "-#", transparent=True),
    "nohup": _wrapper(transparent=True),
    "stdbuf": _wrapper("-i -o -e --input --output --error", transparent=True),
    "command": _wrapper("", "-p", transparent=True),
    "builtin": _wrapper(transparent=True),
    "noglob": _wrapper(transparent=True),
    "nocorrect": _wrapper(transparent=True),
    "exec": _wrapper("-a", "-c -l"),
    "env": _wrapper(
        "-u --unset -C --chdir",
        "-i --ignore-environment -0 --null -v --debug",
        sets=True,
        unknown_dir=True,
    ),
    "sudo": _wrapper(
        "-u -g -h -p -C -D -R -r -t -T -U --user --group --host --prompt --close-from --chdir"
        " --chroot --role --type --command-timeout",
        "-n -k -E -H -b -S -A -P -B --non-interactive --preserve-env --set-home --background"
        " --stdin --askpass --reset-timestamp",
        sets=True,
        unknown_dir=True,
    ),
    "doas": _wrapper("-u -C", "-n -L", unknown_dir=True),
    "ionice": _wrapper("-c -n -p --class --classdata", "-t --ignore"),
    "chrt": _wrapper("-T -P -D", "-b -f -i -o -r -R", skipped=1),
    "taskset": _wrapper("", "-a -c --all-tasks --cpu-list", skipped=1),
    "setsid": _wrapper("", "-c -f -w --ctty --fork --wait"),
    "setarch": _wrapper("", "-R -v", skipped=1),
    "chroot": _wrapper("", "--skip-chdir", skipped=1, unknown_dir=True),
    "unshare": _wrapper("", "-i -m -n -p -u -U -f -r", unknown_dir=True),
    "nsenter": _wrapper("-t --target -S -G", "-a -m -u -i -n -p -U -C", unknown_dir=True),
    "flock": _wrapper("-w --timeout -E --conflict-exit-code", "-s -x -e -n -o -F", skipped=1),
    "strace": _wrapper(
        "-e -o -p -s -a -b -S -u -P", "-f -ff -c -C -q -qq -t -tt -T -v -x -y -i -r"
    ),
    "ltrace": _wrapper("-e -o -p -s -a -n -u", "-f -c -C -S -t -r -i -L"),
    "caffeinate": _wrapper("-t -w", "-d -i -m -s -u"),
    "watch": _wrapper(
        "-n --interval",
        "-b -c -d -e -g -t -x --color --differences --errexit --chgexit --no-title",
        joined=True,
    ),
    "ssh": _wrapper(
        "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
        "-4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
        skipped=1,
        unknown_dir=True,
        joined=True,
    ),
    "busybox": _wrapper(),
    "toybox": _wrapper(),
    "xargs": _wrapper(
        "-I -n -P -L -d -a -E -s --max-args --max-procs --max-lines --delimiter --arg-file"
        " --max-chars --replace",
        "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit",
        open_ended=True,
    ),
    "parallel": _wrapper(
        "-j -P --jobs -a -n -I --colsep --delay --timeout --workdir",
        "-0 -k -X -m -u --keep-order --null --dry-run --will-cite --bar --halt",
        open_ended=True,
        joined=True,
    ),
    "poetry": _wrapper("", "-q -n -v", subcommands="run"),
    "pipenv": _wrapper("", "-q", subcommands="run"),
    "uv": _wrapper("", "-q --frozen --locked --no-sync --offline", subcommands="run"),
    "bundle": _wrapper("", "", subcommands="exec"),
    "rye": _wrapper("", "", subcommands="run"),
    "hatch": _wrapper("", "", subcommands="run"),
    "mise": _wrapper("", "", subcommands="exec x"),
    "direnv": _wrapper("", "", subcommands="exec", skipped=1, unknown_dir=True),
    "npm": _wrapper("", "-s --silent", subcommands="exec x"),
    "pnpm": _wrapper("", "-s --silent -r", subcommands="exec dlx"),
    "docker": _wrapper(
        "-e --env -u --user -w --workdir -v --volume --name -p --network --entrypoint --env-file",
        "-i -t -d --rm -it -ti --interactive --tty --detach --privileged",
        subcommands="exec run",
        skipped=1,
        unknown_dir=True,
    ),
    "kubectl": _wrapper(
        "-n --namespace -c --container --context",
        "-i -t -it --stdin --tty -q",
        subcommands="exec",
        skipped=1,
        unknown_dir=True,
    ),
}
WRAPPERS["podman"] = WRAPPERS["docker"]
WRAPPERS["mosh"] = WRAPPERS["ssh"]
