/** Texts of the web app: words that several parts use. */

export const common = {
  cancel: "Cancel",
  close: "Close",
  copy: "Copy",
  copied: "Copied",
  back: "Back",
  save: "Save",
  loading: "Loading …",
};
