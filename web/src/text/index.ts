/**
 * Every text that the web app shows, in English. Another language is another file of the same type.
 *
 * Texts with parts are functions. A component reads `text.area.name` and holds no text of its own.
 */

import { app } from "./en/app";
import { asks } from "./en/asks";
import { changes } from "./en/changes";
import { coded } from "./en/coded";
import { common } from "./en/common";
import { composer } from "./en/composer";
import { inbox } from "./en/inbox";
import { loops } from "./en/loops";
import { machines } from "./en/machines";
import { markdown } from "./en/markdown";
import { newSession } from "./en/newSession";
import { numbers } from "./en/numbers";
import { parts } from "./en/parts";
import { policy } from "./en/policy";
import { pwa } from "./en/pwa";
import { rewind } from "./en/rewind";
import { schedules } from "./en/schedules";
import { search } from "./en/search";
import { session } from "./en/session";
import { sessions } from "./en/sessions";
import { settings } from "./en/settings";
import { states } from "./en/states";
import { story } from "./en/story";
import { usage } from "./en/usage";

export const text = {
  app,
  asks,
  changes,
  coded,
  common,
  composer,
  inbox,
  loops,
  machines,
  markdown,
  newSession,
  numbers,
  parts,
  policy,
  pwa,
  rewind,
  schedules,
  search,
  session,
  sessions,
  settings,
  states,
  story,
  usage,
};

export type Texts = typeof text;
