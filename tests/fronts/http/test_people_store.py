"""The file of what the hub keeps for people, and its copy in a backup."""

from __future__ import annotations

from pathlib import Path

from quarterdeck.fronts.http.people import FILE, PeopleStore, copy_of
from quarterdeck.fronts.http.roles import Person
from quarterdeck.protocol.people import NewSavedPrompt, PreferenceChange, PreferenceKind
from quarterdeck.protocol.roles import Role

ADA = Person(name="ada", role=Role.OWNER, grant="g")


def test_a_backup_has_all_of_it_while_the_hub_writes_and_a_damaged_file_is_put_aside(
    tmp_path: Path,
) -> None:
    assert copy_of(tmp_path) is None
    store = PeopleStore(tmp_path)
    draft = PreferenceChange(kind=PreferenceKind.DRAFT, key="s", value="typed", at=1)
    store.change(ADA, [draft])
    store.save(ADA, "prompt", "p", NewSavedPrompt(name="n", text="t"))
    copy = copy_of(tmp_path)  # the store is open, and what it wrote is in its log only
    assert copy is not None
    store.close()
    other = tmp_path / "other"
    other.mkdir()
    (other / FILE).write_bytes(copy)
    restored = PeopleStore(other)
    [found] = restored.preferences(ADA).preferences
    assert (found.value, found.version) == ("typed", 1)
    assert [each.name for each in restored.library(ADA).prompts] == ["n"]
    restored.close()

    (other / FILE).write_bytes(b"no database" * 1000)
    anew = PeopleStore(other)
    assert anew.preferences(ADA).preferences == ()
    anew.close()
    assert (other / "people.damaged").exists()
    assert (other / FILE).stat().st_mode & 0o077 == 0
