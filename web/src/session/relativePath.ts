// Paths below a session's working directory are shown relative to it.
import { createContext, useContext } from "react";

export const WorkingDirectory = createContext("");
/** The session that a page shows. */
export const OpenSession = createContext("");

/** A path without the folder, if it is below it. */
export function relativeTo(path: string, folder: string): string {
  if (folder.length < 2) return path;
  const inside = folder.endsWith("/") ? folder : `${folder}/`;
  return path.startsWith(inside) ? path.slice(inside.length) : path;
}

export function useRelativePath(path: string): string {
  return relativeTo(path, useContext(WorkingDirectory));
}
