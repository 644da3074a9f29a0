/**
 * Give a field the focus, with the caret at its end. As the `ref` of a field that was just opened it
 * does so at once: the next keys type into it.
 */
export function takeFocus(field: HTMLInputElement | HTMLTextAreaElement | null): void {
  if (!field) return;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

let trigger: HTMLElement | null = null;

/** A menu was opened by this button. */
export function menuOpenedBy(button: HTMLElement | null): void {
  trigger = button;
}

/**
 * What gets the focus back when something that opens now is closed: what has it, or for an entry of a menu, which
 * is gone by then, the button of the menu.
 */
export function openerNow(): HTMLElement | null {
  const active = document.activeElement;
  if (active instanceof HTMLElement && active !== document.body && !active.closest("[role=menu]")) {
    return active;
  }
  return trigger;
}
