// Names for the parts of the hub's schema that reviews use.
import type { components } from "../api/schema";

type Schemas = components["schemas"];

export type Changes = Schemas["Changes"];
export type FileChange = Schemas["FileChange"];
export type FileDiff = Schemas["FileDiff"];
export type FolderDone = Schemas["FolderDone"];
export type RemoteState = Schemas["RemoteState"];
export type BlockId = Schemas["BlockId"];
export type Entries = Schemas["Entries"];
export type Found = Schemas["Found"];
export type SeenFile = Schemas["SeenFile"];
export type TreeSettled = Schemas["Settled"];
export type Against = "session" | "head";
