/** Texts of the web app: schedules. */

export const schedules = {};
