/** Texts of the web app: Markdown. */

export const markdown = {
  leadsTo: (host: string) => `(leads to ${host})`,
  picture: "picture",
  done: "done:",
  toDo: "to do:",
  diagram: "Diagram",
  showSource: "Show source",
  showDiagram: "Show diagram",
  drawing: "Drawing the diagram …",
  diagramFailed: "The diagram could not be drawn.",
};
