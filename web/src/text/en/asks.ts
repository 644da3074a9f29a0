/** Texts of the web app: asks. */

export const asks = {};
