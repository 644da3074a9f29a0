import {
  Copy,
  EllipsisVertical,
  FileClock,
  FolderGit2,
  GitFork,
  History,
  Link2,
  MessageSquareX,
  PencilLine,
} from "lucide-react";
import { useState } from "react";
import { useLocation } from "wouter";
import { eventLink } from "../session/storyTarget";
import { useAppState, useRights } from "../state/store";
import { text } from "../text";
import { css } from "../ui/css";
import { ErrorText } from "../ui/ErrorText";
import { Icon } from "../ui/Icon";
import { Menu, MenuItem, MenuLine } from "../ui/Menu";
import { useAction } from "../ui/useAction";
import { copyText } from "../ui/useCopy";
import { forkBefore, goesBackInPlace, type RewindChoice } from "./api";
import { EditDialog } from "./EditDialog";
import { ForkDialog, forksOf } from "./ForkDialog";
import { RewindDialog } from "./RewindDialog";
import styles from "./rewind.module.css";

const words = text.rewind;

/** What can be done with a prompt of the story: send it again, fork, go back, copy. */
export function PromptActions(props: {
  session: string;
  prompt: string;
  words: string;
  /** The number of its event, if it is known: then there is a link to it. */
  seq?: number;
}) {
  const { session: id, prompt } = props;
  const session = useAppState((state) => state.sessions.get(id));
  const rights = useRights();
  const [, go] = useLocation();
  const action = useAction();
  const [choice, setChoice] = useState<RewindChoice>();
  const [editing, setEditing] = useState(false);
  const [own, setOwn] = useState(false);
  const forks = useAppState((state) => forksOf(state.sessions, id));
  if (!session) return null;
  const inPlace = goesBackInPlace(session.version);
  const running = session.run !== null;
  const mayFork = rights.includes("manage");
  const fork = (): void =>
    void action.run(async () => {
      go(`/s/${encodeURIComponent(await forkBefore(id, prompt))}`);
    });
  const cannot = running ? words.notHere(session.version ?? null) : words.notRunning;
  const filesHint = running ? words.filesHint : words.notRunning;
  const talkHint = running && inPlace ? words.conversationHint : cannot;
  return (
    <span className={styles.actions}>
      <Menu
        label={words.actions}
        triggerClass={`${css.button.ghost} ${css.button.small} ${css.button.iconButton}`}
        trigger={<Icon of={EllipsisVertical} />}
      >
        {rights.includes("steer") && (
          <>
            <MenuItem
              icon={PencilLine}
              hint={words.editHint}
              disabled={!mayFork && !(inPlace && running)}
              onSelect={() => setEditing(true)}
            >
              {words.edit}
            </MenuItem>
            {mayFork && (
              <>
                <MenuItem icon={GitFork} hint={words.forkHint} onSelect={fork}>
                  {words.fork}
                </MenuItem>
                <MenuItem icon={FolderGit2} hint={words.ownHint} onSelect={() => setOwn(true)}>
                  {words.own}
                </MenuItem>
              </>
            )}
            <MenuLine />
            <MenuItem
              icon={FileClock}
              hint={filesHint}
              disabled={!running}
              onSelect={() => setChoice({ files: true, conversation: false })}
            >
              {words.files}
            </MenuItem>
            <MenuItem
              icon={MessageSquareX}
              hint={talkHint}
              disabled={!running || !inPlace}
              onSelect={() => setChoice({ files: false, conversation: true })}
            >
              {words.conversation}
            </MenuItem>
            <MenuItem
              icon={History}
              hint={talkHint}
              disabled={!running || !inPlace}
              onSelect={() => setChoice({ files: true, conversation: true })}
            >
              {words.both}
            </MenuItem>
            <MenuLine />
          </>
        )}
        <MenuItem icon={Copy} onSelect={() => void copyText(props.words)}>
          {words.copy}
        </MenuItem>
        {props.seq !== undefined && props.seq > 0 && (
          <MenuItem icon={Link2} onSelect={() => void copyText(eventLink(id, props.seq ?? 0))}>
            {words.copyLink}
          </MenuItem>
        )}
      </Menu>
      <ErrorText error={action.error} />
      {choice && (
        <RewindDialog
          session={id}
          prompt={prompt}
          choice={choice}
          onClose={() => setChoice(undefined)}
        />
      )}
      {own && (
        <ForkDialog session={session} before={prompt} forks={forks} onClose={() => setOwn(false)} />
      )}
      {editing && (
        <EditDialog
          session={id}
          prompt={prompt}
          words={props.words}
          inPlace={inPlace && running}
          mayFork={mayFork}
          onClose={() => setEditing(false)}
        />
      )}
    </span>
  );
}
