// Shows the OpenAPI document: operations first, then types. Nothing is loaded from elsewhere.
function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function refName(schema) {
  return schema?.$ref?.split("/").pop();
}

function described(content) {
  return Object.entries(content ?? {}).map(([kind, media]) => {
    const name = refName(media.schema);
    const item = element("li", `${kind}: `);
    if (name) {
      const link = element("a", name);
      link.href = `#type-${name}`;
      item.append(link);
    } else {
      item.append(element("code", JSON.stringify(media.schema)));
    }
    return item;
  });
}

function operation(path, method, said) {
  const method_ = element("span", method.toUpperCase());
  method_.className = "method";
  const summary = element("summary", "", method_, element("code", path));
  const box = element("details", "", summary, element("p", said.description ?? said.summary));
  if (said.parameters?.length) {
    const rows = said.parameters.map((parameter) =>
      element("li", `${parameter.name} (${parameter.in}${parameter.required ? ", required" : ""}): ${parameter.description ?? ""}`));
    box.append(element("h4", "Parameters"), element("ul", "", ...rows));
  }
  if (said.requestBody) {
    box.append(element("h4", "Body"), element("ul", "", ...described(said.requestBody.content)));
  }
  box.append(element("h4", "Answers"));
  for (const [status, answer] of Object.entries(said.responses)) {
    box.append(element("p", `${status}: ${answer.description}`), element("ul", "", ...described(answer.content)));
  }
  return box;
}

async function show() {
  const spec = await (await fetch("/openapi.json")).json();
  const operations = Object.entries(spec.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, said]) => operation(path, method, said)));
  document.getElementById("operations").replaceChildren(...operations);
  const types = Object.entries(spec.components.schemas).map(([name, schema]) => {
    const box = element("details", "", element("summary", name), element("pre", JSON.stringify(schema, null, 2)));
    box.id = `type-${name}`;
    return box;
  });
  document.getElementById("types").replaceChildren(...types);
}

show().catch((error) => {
  document.getElementById("operations").textContent = `The document cannot be shown: ${error.message}`;
});
