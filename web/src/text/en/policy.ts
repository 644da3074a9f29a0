/** Texts of the web app: policy. */

export const policy = {};
