// The folder that a session works in: what is below it is shown by its way from there.
import { createContext, useContext } from "react";

export const Folder = createContext("");

/** A text with the session's folder left out before what is in it. */
export function shortened(said: string, folder: string): string {
  if (folder.length < 2) return said;
  const inside = folder.endsWith("/") ? folder : `${folder}/`;
  return said.startsWith(inside) ? said.slice(inside.length) : said;
}

export function useShort(said: string): string {
  return shortened(said, useContext(Folder));
}
