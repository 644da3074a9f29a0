import { store } from "../state/store";

const MOST = 12;

/** Files of a session's directory that match, as its CLI finds them. */
export async function suggestFiles(session: string, query: string): Promise<string[]> {
  try {
    const found = await store.control<{ suggestions?: { path: string }[] }>(session, {
      subtype: "file_suggestions",
      query,
    });
    return (found.suggestions ?? []).map((one) => one.path).slice(0, MOST);
  } catch {
    return []; // an older CLI, or none is running: there is no menu then
  }
}
