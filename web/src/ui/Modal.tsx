/** The dialog, by its former name. */
export { Dialog as Modal } from "./Dialog";
