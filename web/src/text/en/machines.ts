/** Texts of the web app: machines. */

export const machines = {
  title: "Machines",
  connected: "connected",
  notConnected: "not connected",
  agents: (count: number) => (count === 1 ? "1 agent" : `${count} agents`),
  runner: (version: string) => `runner ${version}`,
  free: (megabytes: number) => `${megabytes} MB free`,
  load: (load: string) => `load ${load}`,
  since: (when: string) => `since ${when}`,
  none: "No runner is connected yet",
  noneHint: "The hub starts the local one automatically.",
  add: "To add a machine, run",
  addCommand: "quarterdeck runner --hub URL --token-file FILE",
};
