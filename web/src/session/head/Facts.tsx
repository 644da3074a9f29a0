import {
  Bot,
  Brain,
  ChartPie,
  CircleDollarSign,
  Folder,
  ListTodo,
  type LucideIcon,
  Server,
  Shield,
  ShieldCheck,
  ShieldOff,
} from "lucide-react";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import type { ControlRequest, Session } from "../../api/types";
import { todoProgress } from "../../state/activity";
import { lookup } from "../../state/lookup";
import { folderOf } from "../../state/sessions";
import { store, useRights } from "../../state/store";
import { starterOf } from "../../state/trees";
import { text } from "../../text";
import { css } from "../../ui/css";
import { ErrorText } from "../../ui/ErrorText";
import { tokens } from "../../ui/format";
import { Icon } from "../../ui/Icon";
import { Marked } from "../../ui/Marked";
import { Menu, MenuChoices } from "../../ui/Menu";
import { Popover } from "../../ui/Popover";
import { canMove, MoveDialog } from "../MoveDialog";
import { sandboxDetails, sandboxLabel } from "../sandbox";
import { BudgetForm, budgetText } from "./Budget";
import { tightest } from "./budgets";
import styles from "./head.module.css";
import { Starter } from "./Starter";
import { effortsOf, modelName, modesOf } from "./switches";
import { useBranch } from "./useBranch";

export interface HeaderDetail {
  name: string;
  label: string;
  node: ReactNode;
}

/** What holds for a session, each as something that opens what changes it. */
export function useFacts(session: Session, openPanel: (name: string) => void): HeaderDetail[] {
  const { head } = text.session;
  const facts: HeaderDetail[] = [
    { name: "place", label: head.place, node: <Place session={session} openPanel={openPanel} /> },
    { name: "model", label: head.model, node: <ModelMenu session={session} /> },
    { name: "mode", label: head.mode, node: <ModeMenu session={session} /> },
  ];
  const starter = starterOf(session);
  if (starter !== undefined) {
    facts.unshift({ name: "starter", label: head.startedBy, node: <Starter id={starter} /> });
  }
  const effort = effortsOf(session).length > 0;
  facts.push({
    name: "effort",
    label: effort ? head.effort : head.thinking,
    node: effort ? <EffortMenu session={session} /> : <ThinkingMenu session={session} />,
  });
  const { tokens: used = 0, window = null } = session.holds.context;
  if (used > 0) {
    facts.push({
      name: "context",
      label: head.context,
      node: (
        <Chip
          icon={ChartPie}
          label={`${head.context}: ${contextText(used, window)} (${tokensText(used, window)})`}
          share={window ? used / window : undefined}
          onClick={() => openPanel("context")}
        >
          {contextText(used, window)}
        </Chip>
      ),
    });
  }
  facts.push({ name: "budget", label: head.budget, node: <BudgetChip session={session} /> });
  const progress = todoProgress(session);
  if (progress) {
    const current = session.holds.todos.find((todo) => todo.status === "in_progress");
    const doing = current?.doing || current?.text || "";
    facts.push({
      name: "todos",
      label: head.todos,
      node: (
        <Chip
          icon={ListTodo}
          label={`${head.todos}: ${[progress, doing].filter(Boolean).join(" · ")}`}
          onClick={() => openPanel("tasks")}
        >
          {progress}
          {doing && (
            <>
              {" · "}
              <Marked text={doing} />
            </>
          )}
        </Chip>
      ),
    });
  }
  facts.push({ name: "machine", label: head.machine, node: <Machine session={session} /> });
  if (session.run !== null) {
    facts.push({ name: "sandbox", label: head.sandbox, node: <Sandbox session={session} /> });
  }
  return facts;
}

function tokensText(used: number, window: number | null): string {
  return text.session.head.contextOf(tokens(used), window ? tokens(window) : "");
}

function contextText(used: number, window: number | null): string {
  if (!window) return tokensText(used, window);
  return `${Math.round((100 * used) / window)} %`;
}

function ChipContent(props: { icon: LucideIcon; share?: number | undefined; children: ReactNode }) {
  return (
    <>
      <Icon of={props.icon} size={14} />
      <span className={styles.value}>{props.children}</span>
      {props.share !== undefined && <Meter share={props.share} />}
    </>
  );
}

/** A small bar. Its number is beside it. */
function Meter({ share }: { share: number }) {
  const part = Math.max(0, Math.min(1, share));
  return (
    <span
      className={styles.meter}
      data-level={part >= 0.9 ? "bad" : part >= 0.7 ? "wait" : undefined}
      aria-hidden="true"
    >
      <span style={{ width: `${100 * part}%` }} />
    </span>
  );
}

function Chip(props: {
  icon: LucideIcon;
  label: string;
  share?: number | undefined;
  onClick: () => void;
  children: ReactNode;
}) {
  return (
    <button
      type="button"
      className={styles.chip}
      title={props.label}
      aria-label={props.label}
      onClick={props.onClick}
    >
      <ChipContent icon={props.icon} share={props.share}>
        {props.children}
      </ChipContent>
    </button>
  );
}

function Place({ session, openPanel }: { session: Session; openPanel: (name: string) => void }) {
  const { head } = text.session;
  const folder = folderOf(session);
  const { project } = session.spec;
  const branch = useBranch(session);
  const last = folder.split("/").filter(Boolean).at(-1) ?? folder;
  const name = project ?? last;
  const shown = branch ? `${name} ⎇ ${branch}` : name;
  return (
    <Popover
      label={`${head.place}: ${shown}`}
      title={head.placeTitle}
      triggerClass={styles.chip ?? ""}
      trigger={
        <ChipContent icon={Folder}>
          <Marked text={shown} code />
        </ChipContent>
      }
    >
      {(close) => (
        <div className={styles.lines}>
          <p className={css.texts.path}>
            <Marked text={folder} code />
          </p>
          {project && <p>{head.project(project)}</p>}
          {branch && <p>{head.branch(branch)}</p>}
          {session.version && <p>{head.version(session.version)}</p>}
          <div className={css.layout.buttons}>
            <button
              type="button"
              onClick={() => {
                close();
                openPanel("files");
              }}
            >
              {head.changes}
            </button>
          </div>
        </div>
      )}
    </Popover>
  );
}

/** A switch of the CLI: what is chosen is shown as pending until the CLI has taken it. */
function useSwitch(session: Session): {
  pending: string | undefined;
  error: string;
  choose: (to: string, request: ControlRequest) => void;
} {
  const [pending, setPending] = useState<string>();
  const [error, setError] = useState("");
  return {
    pending,
    error,
    choose: (to, request) => {
      setPending(to);
      setError("");
      store
        .control(session.session, request)
        .catch((reason: unknown) =>
          setError(reason instanceof Error ? reason.message : String(reason)),
        )
        .finally(() => setPending(undefined));
    },
  };
}

function SwitchMenu(props: {
  session: Session;
  icon: LucideIcon;
  label: string;
  value: string;
  options: readonly { value: string; label: string; hint?: string }[];
  /** The value alone says too little. */
  named?: boolean;
  request: (value: string) => ControlRequest;
}) {
  const { session, label } = props;
  const { head } = text.session;
  const manage = useRights().includes("manage");
  const { pending, error, choose } = useSwitch(session);
  const nameOf = (value: string): string =>
    props.options.find((one) => one.value === value)?.label ?? value;
  const shown = props.value ? nameOf(props.value) : head.unknown;
  const content = (
    <ChipContent icon={props.icon}>
      {props.named && `${label}: `}
      {pending === undefined ? shown : head.pending(nameOf(pending))}
    </ChipContent>
  );
  if (!manage || session.run === null) {
    return (
      <Popover
        label={`${label}: ${shown}`}
        title={`${label}: ${shown}`}
        triggerClass={styles.chip ?? ""}
        trigger={content}
      >
        <p className={css.texts.muted}>{manage ? head.notRunning : head.noRight}</p>
      </Popover>
    );
  }
  return (
    <span className={styles.switch} data-pending={pending !== undefined || undefined}>
      <Menu
        label={`${label}: ${pending === undefined ? shown : head.pending(nameOf(pending))}`}
        triggerClass={styles.chip ?? ""}
        trigger={content}
      >
        <MenuChoices
          label={label}
          value={pending ?? props.value}
          options={props.options}
          onChange={(value) => choose(value, props.request(value))}
        />
      </Menu>
      <ErrorText error={error} />
    </span>
  );
}

function ModelMenu({ session }: { session: Session }) {
  const offered = session.offers?.models ?? [];
  const model = session.model ?? "";
  const options = offered.map((one) => ({
    value: one.model,
    label: one.name || one.model,
    ...(one.description ? { hint: one.description } : {}),
  }));
  const current =
    offered.find((one) => one.model === model) ?? offered.find((one) => one.resolved === model);
  const value = current?.model ?? model;
  if (model && !current) options.unshift({ value: model, label: modelName(session, model) });
  return (
    <SwitchMenu
      session={session}
      icon={Bot}
      label={text.session.head.model}
      value={value}
      options={options}
      request={(to) => ({ subtype: "set_model", model: to })}
    />
  );
}

function ModeMenu({ session }: { session: Session }) {
  return (
    <SwitchMenu
      session={session}
      icon={Shield}
      label={text.session.head.mode}
      value={session.mode ?? "default"}
      options={modesOf(session).map((mode) => {
        const hint = lookup(text.session.modeHints, mode);
        const label = lookup(text.session.modes, mode) ?? mode;
        return { value: mode, label, ...(hint ? { hint } : {}) };
      })}
      request={(mode) => ({ subtype: "set_permission_mode", mode })}
    />
  );
}

function EffortMenu({ session }: { session: Session }) {
  return (
    <SwitchMenu
      session={session}
      icon={Brain}
      named
      label={text.session.head.effort}
      value={session.effort ?? "auto"}
      options={effortsOf(session).map((level) => ({
        value: level,
        label: lookup(text.session.efforts, level) ?? level,
      }))}
      request={(level) => ({
        subtype: "apply_flag_settings",
        settings: { effortLevel: level === "auto" ? null : level },
      })}
    />
  );
}

/** For models without effort levels. */
function ThinkingMenu({ session }: { session: Session }) {
  const thinking = session.thinking ?? "auto";
  const codes = [...new Set([...Object.keys(text.session.thinkingCodes), thinking])];
  return (
    <SwitchMenu
      session={session}
      icon={Brain}
      named
      label={text.session.head.thinking}
      value={thinking}
      options={codes.map((code) => ({
        value: code,
        label: lookup(text.session.thinkingCodes, code) ?? code,
      }))}
      request={(code) => ({
        subtype: "set_max_thinking_tokens",
        max_thinking_tokens: code === "auto" ? null : code === "off" ? 0 : Number(code),
      })}
    />
  );
}

function BudgetChip({ session }: { session: Session }) {
  const use = tightest(session);
  return (
    <Popover
      label={`${text.session.head.budget}: ${budgetText(session)}`}
      title={text.session.budget.title}
      triggerClass={styles.chip ?? ""}
      trigger={
        <ChipContent icon={CircleDollarSign} share={use?.share}>
          {budgetText(session)}
        </ChipContent>
      }
    >
      {(close) => <BudgetForm session={session} onDone={close} />}
    </Popover>
  );
}

function Machine({ session }: { session: Session }) {
  const { head } = text.session;
  const name = session.machine || session.spec.machine || "local";
  const isLocal = name === "local";
  const manage = useRights().includes("manage");
  const [moving, setMoving] = useState(false);
  const movable = canMove(session);
  const moves = !!session.spec.session_mirror;
  const why = !manage ? head.noRight : moves ? head.machineRuns : head.noTranscript;
  return (
    <>
      <Popover
        label={`${head.machine}: ${isLocal ? head.localMachine : name}`}
        title={head.machineTitle}
        triggerClass={styles.chip ?? ""}
        trigger={
          <ChipContent icon={Server}>
            <Marked text={isLocal ? head.localMachine : name} code />
          </ChipContent>
        }
      >
        {(close) => (
          <div className={styles.lines}>
            <p>{isLocal ? head.localText : head.machineText(name)}</p>
            {manage && movable ? (
              <div className={css.layout.buttons}>
                <button
                  type="button"
                  onClick={() => {
                    close();
                    setMoving(true);
                  }}
                >
                  {text.session.move.open}
                </button>
              </div>
            ) : (
              <p className={css.texts.muted}>{why}</p>
            )}
            <Link href="/machines">{head.allMachines}</Link>
          </div>
        )}
      </Popover>
      {moving && <MoveDialog session={session} onClose={() => setMoving(false)} />}
    </>
  );
}

function Sandbox({ session }: { session: Session }) {
  const { head } = text.session;
  const off = !session.sandbox?.mode || session.sandbox.mode === "off";
  return (
    <Popover
      label={sandboxLabel(session.sandbox)}
      title={head.sandboxTitle}
      triggerClass={styles.chip ?? ""}
      trigger={
        <ChipContent icon={off ? ShieldOff : ShieldCheck}>
          {sandboxLabel(session.sandbox)}
        </ChipContent>
      }
    >
      <p>
        <Marked text={sandboxDetails(session.sandbox)} />
      </p>
      <p className={css.texts.muted}>{head.sandboxNext}</p>
      <Link href="/policy">{head.policy}</Link>
    </Popover>
  );
}
