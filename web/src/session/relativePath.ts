// The folder that a session works in: what is below it is shown by its way from there.
import { createContext, useContext } from "react";

export const WorkingDirectory = createContext("");

/** A text with the session's folder left out before what is in it. */
export function relativeTo(path: string, folder: string): string {
  if (folder.length < 2) return path;
  const inside = folder.endsWith("/") ? folder : `${folder}/`;
  return path.startsWith(inside) ? path.slice(inside.length) : path;
}

export function useRelativePath(path: string): string {
  return relativeTo(path, useContext(WorkingDirectory));
}
