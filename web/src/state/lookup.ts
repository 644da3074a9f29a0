/**
 * What a table has under a name from outside. A plain `table[name]` also finds what every object
 * inherits: an agent may well call a tool that is named «constructor».
 */
export function lookup<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
