"""What a sandbox hides, protects and opens: lists of paths, each with its reason.

Data only. `plan` puts them together. Names are separated by blanks; those of a home folder are
relative to it.
"""

from __future__ import annotations

from functools import cache

SECRETS = (
    # Keys, and accounts of a person.
    ".ssh .gnupg .aws .azure .kube .config/gcloud .config/gh .config/hub .config/glab-cli",
    ".config/doctl .config/rclone .config/op .config/sops .config/age .terraform.d .oci .fly",
    ".netrc _netrc .pgpass .my.cnf .mylogin.cnf .git-credentials .config/git/credentials",
    ".docker/config.json .config/containers/auth.json .vault-token .pypirc .gem/credentials",
    ".cargo/credentials .cargo/credentials.toml .config/pip/pip.conf .m2/settings.xml",
    ".gradle/gradle.properties .s3cfg .boto .databrickscfg .snowflake .config/stripe",
    # Passwords and sessions of browsers, mail and wallets.
    ".mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware",
    ".config/microsoft-edge .config/Bitwarden .config/1Password .password-store",
    ".Xauthority .local/share/keyrings .config/Signal .config/Slack .electrum .bitcoin .ethereum",
    "Library/Keychains Library/Cookies Library/Application\\ Support/Google/Chrome",
    # What a person has typed.
    ".bash_history .zsh_history .python_history .psql_history .mysql_history .node_repl_history",
    ".local/share/fish/fish_history .lesshst",
)
"""Below the home folder: hidden in every mode."""

SYSTEM_SECRETS = (
    "/etc/shadow /etc/gshadow /etc/sudoers /etc/sudoers.d /etc/ssh/ssh_host_*_key",
    "/root/.ssh /root/.aws /root/.gnupg /home/*/.ssh /home/*/.aws /home/*/.gnupg",
)
"""Hidden: root could read them."""

SERVICES = (
    "/run/user/{user} /run/dbus /run/docker.sock /run/containerd /run/podman /run/crio",
    "/run/libvirt /run/systemd/private /run/snapd.socket /run/screen /run/tmux",
    "/run/secrets /run/credentials",
    # With these, Claude sessions prompt each other.
    "/tmp/cc-socks-{user}",  # noqa: S108 - the name that the CLI gives it
)
"""Sockets of programs that would start others on behalf of who asks: hidden."""

STARTUP = (
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv",
    ".zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .inputrc .xinitrc .xprofile",
    ".xsession .xsessionrc .pam_environment .tmux.conf .screenrc .gitconfig .config/git .npmrc",
    ".vimrc .vim .emacs .emacs.d",
    ".config/fish .config/bash .config/zsh .config/nushell .config/autostart .config/systemd",
    ".config/environment.d .config/nvim .config/direnv .config/mise .config/Code .vscode-server",
    ".local/bin .local/share/systemd .local/share/applications .cargo/bin .cargo/config.toml bin",
    ".claude .local/share/claude Library/LaunchAgents Library/LaunchDaemons",
)
"""Below the home folder: what runs by itself, or before what a person types. Read-only also where
a session works in the home folder, or a rule opens it, unless a rule names it."""

CACHES = (
    ".cache .npm .yarn .pnpm-store .local/share/pnpm .bun/install/cache .cargo/registry .cargo/git",
    ".rustup/tmp .rustup/downloads go/pkg .gradle/caches .gradle/daemon .gradle/native",
    ".gradle/wrapper/dists .m2/repository .ivy2 .sbt/boot .nuget/packages .local/share/NuGet",
    ".composer/cache .bundle/cache .gem/specs .hex/packages .cabal/packages .stack/pantry",
    ".ccache .conan/data .conan2/p .terraform.d/plugin-cache .deno .local/share/uv",
    ".local/share/virtualenvs .virtualenvs .ipython .jupyter .matplotlib .nv .keras .pub-cache",
    "Library/Caches",
)
"""Below the home folder: written by builds, where they exist. Not in the mode `strict`."""

MADE_CACHES = (".cache .npm",)
"""Of these, what is made if it does not exist: almost every build would make it."""

TOOLCHAINS = (
    ".local/bin .local/lib .local/share/claude .local/share/uv .local/share/pnpm .local/share/mise",
    ".local/share/fnm .local/state/nix .nix-profile .pyenv .rbenv .nodenv .nvm .volta .asdf",
    ".sdkman .cargo/bin .cargo/env .cargo/registry .cargo/config.toml .rustup go/bin go/pkg .bun",
    ".deno .npm .npm-global .gradle/wrapper .m2/repository .cache/uv .cache/pip .conda miniconda3",
    ".gitconfig .config/git/config .config/git/ignore .config/git/attributes .npmrc .profile",
    ".bashrc .bash_profile .zshrc .zshenv .zprofile .linuxbrew bin",
)
"""Below the home folder: all of it that can be seen in the mode `strict`, beside the CLI's own."""

CLI_WRITES = ("projects todos tasks plans session-env file-history debug",)
"""Folders of the CLI's own folder that it writes, and that no program runs anything from. Each is a
mount, and takes time at the start: the CLI does without its caches and statistics. Without `debug`
old versions end at once."""

CLI_WRITES_IF_THERE = ("teams jobs",)
"""The same for parts of the CLI that few people use."""

CLI_FILES = ("history.jsonl .credentials.json stats-cache.json mcp-needs-auth-cache.json",)
"""Files there that it writes in place. A login that was renewed must not be lost."""

CLI_PRIVATE = ("shell-snapshots",)
"""Folders there with programs for the shells of one CLI: other CLIs must not run these."""

PROTECTED = (
    # Hooks, as other version control and frameworks have them.
    ".gitmodules .githooks .git-hooks .lefthook .overcommit.yml .pre-commit-config.yaml",
    "lefthook.yml lefthook.yaml .hg/hgrc .jj/repo/config.toml",
    # Editors and other agents: they start programs when a person opens the folder.
    ".vscode .idea .fleet .zed .devcontainer .vimrc .exrc .nvim.lua .dir-locals.el",
    ".cursor .windsurf .codex .gemini .continue .roo .kiro",
    # Files that shells and tools load by themselves.
    ".bashrc .bash_profile .profile .zshrc .zshenv .zprofile mise.toml .mise.toml .pdbrc .gdbinit",
)
"""In the project: read-only if they exist. A rule that allows to edit one of them opens it.

Not here: what runs on a build server, and programs of the project itself (`package.json`,
`conftest.py`). A person sees these in a diff before they run elsewhere.
"""

RESERVED = (".claude .mcp.json .husky .envrc",)
"""In the project: read-only, and if they do not exist, nobody makes them. A program that a person
starts there later would run what is in them."""

GIT_READ_ONLY = ("config config.worktree hooks modules worktrees commondir",)
"""In a git folder: all that names programs, or leads git to another folder."""

GIT_RESERVED = ("hooks commondir",)
"""Of these, what must not come into being: git would obey it. `config.worktree` is one if the
settings say that git reads it."""

WORKTREE_READ_ONLY = ("commondir gitdir config.worktree",)
"""In the git folder of a work tree."""


@cache
def names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The names of a list. A blank in a name is written with a backslash before it."""
    joined = " ".join(texts).replace("\\ ", "\0")
    return tuple(name.replace("\0", " ") for name in joined.split())
