// Which answers can be taken back for a moment, because a mistake would cost more than the moment. Pure.
import type { Answer } from "../api/types";

/**
 * Whether an answer is held back before it is sent: one that a key gave, since keys are pressed by
 * mistake; one that grants more than this call; and one that lets a plan begin. An ordinary click on
 * "Allow once" or "Deny" is sent at once.
 */
export function isHeld(answer: Answer, byKey: boolean): boolean {
  if (byKey) return true;
  if (answer.answer === "allow") {
    return (answer.scope ?? "once") !== "once" || (answer.updates?.length ?? 0) > 0;
  }
  return answer.answer === "plan" && answer.choice !== "revise" && answer.choice !== "reject";
}
