/**
 * Give a field the focus, with the caret at its end. As the `ref` of a field that was just opened it
 * does so at once: the next keys type into it.
 */
export function takeFocus(field: HTMLInputElement | HTMLTextAreaElement | null): void {
  if (!field) return;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}
