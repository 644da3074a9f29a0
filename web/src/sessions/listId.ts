/** The id of the list of sessions, for links to it. */
export const SESSION_LIST = "sessions";
