/** Texts of the web app: loops. */

export const loops = {
  title: "Loops",
  reload: "Reload",
  none: "No loops yet",
  noneHint: "A loop repeats a task until a command says that it is done, within limits.",
  start: "To start one, run",
  startCommand: "quarterdeck loop run TASK --until-command COMMAND",
  done: "done",
  states: {
    running: "running",
    paused: "paused",
    waiting: "waiting for the usage limit",
    stopped: "stopped",
    cut_off: "not running",
  },
  turns: (count: number, most: number) =>
    `${count === 1 ? "1 turn" : `${count} turns`} of at most ${most}`,
  resume: "Resume",
  pause: "Pause",
  stop: "Stop",
  report: "Report",
};
