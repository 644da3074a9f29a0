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
  noDiagram: "it is no diagram",
  tooSlow: "it took too long",
  tooLarge: "it is too large",
  noPicture: "it is no picture",
  diagramFailed: "The diagram could not be drawn.",
};
