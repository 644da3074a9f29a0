/**
 * The classes that several features share, by the part of the page that they are of.
 *
 * `main.tsx` imports this first: those of a feature come later, and win.
 */

import badge from "./badge.module.css";
import button from "./button.module.css";
import card from "./card.module.css";
import empty from "./empty.module.css";
import field from "./field.module.css";
import layout from "./layout.module.css";
import marked from "./marked.module.css";
import note from "./note.module.css";
import table from "./table.module.css";
import texts from "./texts.module.css";

export const css = { badge, button, card, empty, field, layout, marked, note, table, texts };
