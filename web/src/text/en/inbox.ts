/** Texts of the web app: the inbox. */

const calls = (count: number): string => (count === 1 ? "1 call" : `${count} calls`);

export const inbox = {
  title: "Waiting for you",
  heading: (count: number) => `Waiting for you · ${count}`,
  toSessions: (count: number) => (count === 1 ? "To the session" : `To the ${count} sessions`),
  select: (title: string) => `Select ${title}`,
  answerSelected: "Answer the selected calls",
  selected: (count: number) => `${calls(count)} selected`,
  reason: "Reason (sent to each agent)",
  deny: (count: number) => `Deny ${calls(count)}`,
  denyWith: (count: number) => `Deny ${calls(count)} …`,
  allow: (count: number) => `Allow ${calls(count)} once`,
  clear: "Clear selection",
};
