/** Texts of the web app: machines. */

export const machines = {
  title: "Machines",
  connected: "connected",
  notConnected: "not connected",
  agents: (count: number) => (count === 1 ? "1 agent" : `${count} agents`),
  runner: (version: string) => `runner ${version}`,
  free: (size: string) => `${size} free`,
  load: (load: string) => `load ${load}`,
  since: (when: string) => `since ${when}`,
  alarms: {
    other_configuration: (hub: string) =>
      `The hub at ${hub} has another quarterdeck.toml. Make the files alike.`,
    other_policy: (hub: string) =>
      `The hub at ${hub} has another policy.toml. Make the files alike.`,
    unreachable: (hub: string) =>
      `The hub at ${hub} does not answer this hub. Set its journal.hub_address to an address that other hubs reach.`,
  },
  none: "No runner is connected yet",
  noneHint: "The hub starts the local one automatically.",
  add: "To add a machine, run",
  addCommand: "quarterdeck runner --hub URL --token-file FILE",
};
