// Shows the OpenAPI document: operations in their groups, then types. Nothing is loaded from elsewhere.
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
  const about = element("span", ` ${said.summary}`);
  const summary = element("summary", "", method_, element("code", path), about);
  const box = element("details", "", summary, element("p", said.description ?? said.summary));
  if (said.parameters?.length) {
    const rows = said.parameters.map((parameter) =>
      element("li", `${parameter.name} (${parameter.in}${parameter.required ? ", required" : ""}): ${parameter.description ?? ""}`));
    box.append(element("h4", "Parameters"), element("ul", "", ...rows));
  }
  if (said.requestBody) {
    box.append(element("h4", "Body"), element("ul", "", ...described(said.requestBody.content)));
    const example = said.requestBody.content["application/json"]?.example;
    if (example) box.append(element("pre", JSON.stringify(example, null, 2)));
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
    Object.entries(methods).map(([method, said]) => [said.tags[0], operation(path, method, said)]));
  const groups = spec.tags.map(({ name, description }) => {
    const own = operations.filter(([tag]) => tag === name).map(([, box]) => box);
    return element("section", "", element("h2", name), element("p", description), ...own);
  });
  document.getElementById("operations").replaceChildren(...groups);
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
