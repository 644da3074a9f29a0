"""Build tools, package managers, containers and checkers: by their tables and readers."""

from __future__ import annotations

import pytest

from quarterdeck.policy.shell.effects import ProgramEffects
from quarterdeck.policy.shell.programs import look_up
from quarterdeck.policy.shell.word_reader import join_words
from quarterdeck.policy.shell.wrappers import unwrap
from support.shell_words import HERE, said, words


def known(text: str, *more: str) -> ProgramEffects:
    return look_up(words(text, *more), HERE, None)


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("make -E x y", "runs -E"),
        ("make --ev=x y", "runs --ev"),
        ("make -sfa", "runs -sf"),
        ("make -C a", "runs -C"),
        ("make --direc=a", "runs --direc"),
        ("make CC=x", "alters CC="),
        ("make .SHELLFLAGS=x", "alters .SHELLFLAGS="),
        ("make X:=y", "alters X:="),
        ("cmake -P a", "runs -P"),
        ("cmake -E touch a", "runs -E"),
        ("cmake -Ca .", "runs -C"),
        ("cmake -DCMAKE_C_COMPILER=./x .", "runs -D"),
        ("cmake -D CMAKE_PROJECT_INCLUDE=x .", "runs -D"),
        ("cmake --build a -- -f b", "runs -f"),
        ("ninja -f a", "runs -f"),
        ("ninja -t clean", "runs -t"),
        ("gcc -wrapper x a.c", "runs -wrapper"),
        ("gcc -fplugin=x a.c", "runs -fplugin"),
        ("gcc -B./x a.c", "runs -B"),
        ("gcc --prefix=./x a.c", "runs --prefix"),
        ("gcc -specs=x a.c", "runs -specs"),
        ("gcc -Wl,-Map=/x a.c", "runs -Wl,"),
        ("gcc @a b.c", "runs @a"),
        ("gcc-12 -wrapper x a.c", "runs -wrapper"),
        ("clang -Xclang -load a.c", "runs -Xclang"),
        ("go test -exec ./x", "runs -exec"),
        ("go test --exec=./x ./...", "runs --exec"),
        ("go build --toolexec ./x", "runs --toolexec"),
        ("go vet --vettool=./x", "runs --vettool"),
        ("go build -ldflags=-extld=./x", "runs -ldflags"),
        ("go build -C /o", "runs -C"),
        ("go env -w A=b", "alters -w"),
        ("cargo --config a build", "runs --config"),
        ("cargo build --config a", "runs --config"),
        ("cargo -Z x build", "runs -Z"),
        ("cargo test --manifest-path=a", "runs --manifest-path"),
        ("cargo nextest run --config a", "runs --config"),
        ("javac -J-x A.java", "runs -J"),
        ("java -javaagent:x A", "runs -javaagent:"),
        ("mvn -f a test", "runs -f"),
        ("gradle -I a test", "runs -I"),
        ("npm test --script-shell=x", "runs --script-shell"),
        ("npm test --script-sh=x", "runs --script-sh"),
        ("npm test -script-shell x", "runs -script-shell"),
        ("npm test ----script-shell=x", "runs ----script-shell"),
        ("npm test --no-script-shell=x", "runs --no-script-shell"),
        ("npm test --no-no-script-sh x", "runs --no-no-script-sh"),
        ("npm --prefix a test", "runs --prefix"),
        ("npm -C a test", "runs -C"),
        ("npm test --node-options=x", "runs --node-options"),
        ("npm config set a b", "alters set"),
        ("npm c set a b", "alters set"),
        ("npm conf delete a", "alters delete"),
        ("npm set a b", "alters set"),
        ("npm pkg set a=b", "alters set"),
        ("npm config edit --editor=x", "runs --editor"),
        ("npm exec -c x", "runs -c"),
        ("npm no-such-subcommand", "runs no-such-subcommand"),
        ("yarn --cwd a test", "runs --cwd"),
        ("yarn config set a b", "alters set"),
        ("pnpm -C a test", "runs -C"),
        ("pnpm config set a b", "alters set"),
        ("pip --python x install y", "runs --python"),
        ("pip install --index-u http://x y", "runs --index-u"),
        ("pip config set a b", "alters set"),
        ("uv --directory a sync", "runs --directory"),
        ("docker -H tcp://x ps", "runs -H"),
        ("docker run --privileged x", "runs --privileged"),
        ("docker run -v a:/b x", "runs -v"),
        ("docker run -itv a:/b x", "runs -itv"),
        ("docker compose -f a up", "runs -f"),
        ("kubectl --kubeconfig a get pods", "runs --kubeconfig"),
        ("kubectl config use-context a", "alters use-context"),
        ("terraform -chdir=a apply", "runs -chdir"),
        ("helm upgrade a b --post-renderer x", "runs --post-renderer"),
        ("apt-get -o A=b update", "runs -o"),
        ("patch -e a", "runs -e"),
        ("crontab a", "runs a"),
        ("crontab -", "runs -"),
        ("crontab -r", "runs -r"),
        ("at now", "runs -"),
        ("at -f a now", "runs -f"),
        ("systemctl edit a", "runs edit"),
        ("systemctl -H h status", "runs -H"),
        ("journalctl --vacuum-size=1", "runs --vacuum-size"),
        ("pytest -p a", "runs -p"),
        ("pytest -o a=b", "runs -o"),
        ("prettier --plugin=x a", "runs --plugin"),
        ("eslint -c a b", "runs -c"),
    ],
)
def test_what_makes_a_tool_do_something_else_must_be_named(text: str, effect: str) -> None:
    assert effect in said(known(text).effects)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("gcc -E -xc a", "/w/a"),
        ("gcc -include a b.c", "/w/a"),
        ("cmake /o", "/o"),
        ("cmake -S /o -B build", "/o"),
        ("pip install -r a", "/w/a"),
        ("pip install --requ=a", "/w/a"),
        ("pip install ./a", "/w/a"),
        ("uv pip install -r a", "/w/a"),
        ("npm publish a", "/w/a"),
        ("docker run --env-file a x", "/w/a"),
        ("docker cp a c:/x", "/w/a"),
        ("docker run -v /o:/x i", "/o"),
        ("docker run --mount type=bind,source=/o,target=/x i", "/o"),
        ("docker compose --env-file a up", "/w/a"),
        ("kubectl apply -f a", "/w/a"),
        ("kubectl apply -f=a", "/w/a"),
        ("kubectl get pods -o go-template-file=a", "/w/a"),
        ("docker run -v=/o:/x i", "/o"),
        ("kubectl create secret generic x --from-file=a", "/w/a"),
        ("kubectl create secret generic x --from-file=k=a", "/w/a"),
        ("kubectl create secret generic x --from-env-file=a", "/w/a"),
        ("kubectl cp a p:/x", "/w/a"),
        ("helm upgrade x y --set-file k=a", "/w/a"),
        ("helm template . -f a", "/w/a"),
        ("gh gist create a", "/w/a"),
        ("gh api x -F y=@a", "/w/a"),
        ("gh api x --input a", "/w/a"),
        ("gh pr create -F a", "/w/a"),
        ("gh pr create --no-such-option a", "/w/a"),
        ("gh pr create --no-such-option=a", "/w/a"),
        ("aws s3 cp a s3://b", "/w/a"),
        ("aws x y --z file://a", "/w/a"),
        ("aws x y file://a", "/w/a"),
        ("aws s3 sync a s3://b", "/w/a"),
        ("gh release upload v1 a#b", "/w/a"),
        ("gh ssh-key add a", "/w/a"),
        ("gcloud auth x --key-file=a", "/w/a"),
        ("aws x y --z=file://a", "/w/a"),
        ("gcloud x y --z=a", "/w/a"),
        ("terraform plan -var-file=a", "/w/a"),
        ("java -jar a", "/w/a"),
        ("patch b a", "/w/a"),
        ("crontab a", "/w/a"),
    ],
)
def test_files_that_a_tool_reads_are_told(text: str, read: str) -> None:
    found = [e.target.paths for e in known(text).effects if e.target and e.kind.value == "reads"]
    # A program that runs a file reads it.
    assert any(read in paths for paths in found) or f"runs {read}" in said(known(text).effects)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("gcc -o/o a.c", "/o"),
        ("gcc --output=/o a.c", "/o"),
        ("gcc -MD -MF /o a.c", "/o"),
        ("cmake -B /o", "/o"),
        ("cmake -B/o", "/o"),
        ("go build -o /o", "/o"),
        ("go test -coverprofile=/o", "/o"),
        ("cargo build --target-dir /o", "/o"),
        ("npm test --cache=/o", "/o"),
        ("npm pack --pack-dest /o", "/o"),
        ("pip download -d /o x", "/o"),
        ("pip install -t /o x", "/o"),
        ("docker cp c:/x /o", "/o"),
        ("docker save -o /o x", "/o"),
        ("docker run -v /o:/x i", "/o"),
        ("terraform plan -out=/o", "/o"),
        ("terraform providers mirror /o", "/o"),
        ("aws s3 cp s3://b /o", "/o"),
        ("aws s3api get-object --key b /o", "/o"),
        ("patch a", "/w/a"),
        ("patch -p1", "/w"),
        ("patch -d /o -p0", "/o"),
        ("patch --directory=/o -p0", "/o"),
        ("ruff check --fix a", "/w/a"),
        ("ruff format", "/w"),
        ("black a", "/w/a"),
        ("prettier --write a", "/w/a"),
        ("eslint --fix a", "/w/a"),
        ("gofmt -w a", "/w/a"),
        ("pytest --junitxml=/o", "/o"),
    ],
)
def test_files_that_a_tool_writes_are_told(text: str, written: str) -> None:
    found = [e.target.paths for e in known(text).effects if e.target and e.kind.value == "writes"]
    assert any(written in paths for paths in found), found


@pytest.mark.parametrize(
    "text",
    [
        "npm ls --depth=0", "npm outdated", "npm view react version", "npm --silent ls",
        "npm audit", "npm config get registry", "npm why x", "pnpm list",
        "pnpm -r ls", "pip list", "pip -q show x", "pip freeze", "pip3 list --outdated",
        "uv pip list", "go list ./...", "go env GOPATH", "go version", "go mod graph",
        "cargo tree", "cargo metadata", "docker ps -a", "docker images",
        "docker logs -f --tail 5 x", "docker --log-level error ps", "docker compose ps",
        "docker compose logs web", "docker image ls", "kubectl get pods", "kubectl -n a get pods",
        "kubectl logs -f x", "kubectl describe pod x", "gh pr view 3", "gh -R a/b pr list",
        "helm list", "aws s3 ls", "aws --profile x s3 ls",
        "systemctl status x", "apt list", "systemctl --user list-units", "journalctl -u x -n 5",
        "crontab -l", "ruff check .", "gofmt -l .", "gem list",
    ],
)  # fmt: skip
def test_some_subcommands_only_look(text: str) -> None:
    assert known(text).looks


@pytest.mark.parametrize(
    "text",
    [
        "npm publish", "npm install", "npm audit fix", "npm config set a b", "npm pkg set a=b",
        "npm ls --prefix a", "npm view x --browser=y", "pip install x", "uv sync", "go build",
        "go env -w A=b", "go list -toolexec=x", "cargo build", "cargo tree --config a",
        "docker push x", "docker --context a push x", "docker image push x", "docker compose push",
        "docker rm x", "docker -H x ps", "kubectl delete pod x", "kubectl -n a delete pod x",
        "gh pr create", "helm upgrade a b", "terraform apply", "aws s3 cp a s3://b",
        "systemctl stop x", "crontab -r", "journalctl --rotate", "ruff check --fix", "ruff format",
        "gofmt -w a", "docker $x", "npm $x",
    ],
)  # fmt: skip
def test_other_subcommands_and_options_do_more_than_look(text: str) -> None:
    assert not known(text).looks


@pytest.mark.parametrize(
    "text",
    [
        "npm test", "npm run build -- --watch", "npm test --coverage", "npm ci", "npm publ",
        "yarn build", "pnpm -r build", "make -j8 all", "go test ./... -run X -v",
        "go build -ldflags=-s", "cargo test", "cargo nextest run", "cargo +nightly build",
        "docker compose up -d", "docker build -t a:1 .", "docker run --rm -p 80:80 nginx",
        "pytest -q -x tests", "pytest --no-such-option", "tox -e py", "cmake --build build -j 4",
        "cmake -DCMAKE_BUILD_TYPE=Release .", "mvn -q test", "./gradlew test",
        "gcc -Wall -O2 -g -std=c11 -Iinclude -DX=1 -c a.c -lm", "kubectl rollout restart x",
        "terraform apply -auto-approve", "tsc --noEmit -p .", "vitest run", "npm init -y",
        "uv sync",
    ],
)  # fmt: skip
def test_an_ordinary_use_needs_nothing_but_its_name(text: str) -> None:
    assert not [e for e in known(text).effects if e.kind.value in {"runs", "alters", "writes"}]


@pytest.mark.parametrize(
    ("text", "inner"),
    [
        ("npm exec -- rm a", "rm a"),
        ("npm exe -- rm a", "rm a"),
        ("npm x rm a", "rm a"),
        ("npm --silent exec rm a", "rm a"),
        ("npm --prefix b exec -- rm a", "rm a"),
        ("npm explore b -- rm a", "rm a"),
        ("yarn exec rm a", "rm a"),
        ("pnpm -r exec rm a", "rm a"),
        ("gem exec rm a", "rm a"),
        ("composer exec rm a", "rm a"),
        ("uv run rm a", "rm a"),
        ("uv -q run --with b rm a", "rm a"),
        ("uv tool run rm a", "rm a"),
        ("poetry run rm a", "rm a"),
        ("poetry -q run rm a", "rm a"),
        ("pipenv run rm a", "rm a"),
        ("bundle exec rm a", "rm a"),
        ("docker exec -it b rm a", "rm a"),
        ("docker --context c exec -u d b rm a", "rm a"),
        ("docker container exec b rm a", "rm a"),
        ("docker run --rm -e X=1 b rm a", "rm a"),
        ("docker compose exec b rm a", "rm a"),
        ("docker compose -p c run --rm b rm a", "rm a"),
        ("docker-compose exec -T b rm a", "rm a"),
        ("podman exec b rm a", "rm a"),
        ("kubectl exec b -- rm a", "rm a"),
        ("kubectl -n c exec -it b -c d -- rm a", "rm a"),
    ],
)
def test_a_command_in_a_command_is_found_wherever_it_begins(text: str, inner: str) -> None:
    found = unwrap(words(text), HERE)
    assert [join_words(each.words) for each in found.commands] == [inner]
    assert not found.doubts


def test_texts_for_a_shell_are_found() -> None:
    for text in ("npm exec -c", "tar xf a --to-command", "go test -exec", "rsync a h: -e"):
        assert [each.text for each in unwrap(words(text, "'rm a'"), HERE).scripts] == ["rm a"]
    action = words("tar cf a b --checkpoint-action=exec='rm' --checkpoint=1")
    assert [each.text for each in unwrap(action, HERE).scripts] == ["rm"]


def test_commands_that_yarn_and_pnpm_run_for_a_word_are_found() -> None:
    assert known("yarn workspace b exec rm a").scripts == ("rm a",)
    assert known("yarn workspaces foreach -A exec rm a").scripts == ("rm a",)
    assert known("pnpm touch a").scripts == ("touch a",)
    for text in ("pnpm build", "pnpm -r lint", "pnpm tsc --noEmit", "yarn build", "pnpm install"):
        assert known(text).scripts == (), text


def test_a_command_behind_an_unknown_option_is_not_certain() -> None:
    for text in (
        "uv run --no-such-option a b",
        "docker run --no-such-option a b",
        "docker exec $x b",
    ):
        assert unwrap(words(text), HERE).doubts, text


def test_packages_by_address_are_fetched() -> None:
    assert known("pip install git+https://e.test/x").fetches == ("http://e.test/x",)
    assert known("npm install https://e.test/x.tgz").fetches == ("http://e.test/x.tgz",)
    assert known("npm install x --registry=https://e.test").fetches == ("http://e.test",)
    assert known("cargo install --git https://e.test/x").fetches == ("http://e.test/x",)
    assert known("npm install x").fetches == ()
