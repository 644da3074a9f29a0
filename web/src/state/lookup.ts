/**
 * The entry of a table for an untrusted name. A plain `table[name]` also finds inherited members: an
 * agent may call a tool that is named "constructor".
 */
export function lookup<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
