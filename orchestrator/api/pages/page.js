"use strict";

// Texts of the document and of responses are only ever set as text, never as HTML.
function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function row(cell, ...texts) {
  const made = element("tr");
  for (const one of texts) made.append(one instanceof Node ? element("td", "", one) : element(cell, one));
  return made;
}

function example(content) {
  const shown = content.example ?? Object.values(content.examples ?? {})[0]?.value;
  if (shown === undefined) return "";
  return typeof shown === "string" ? shown : JSON.stringify(shown, null, 2);
}

function table(head, rows) {
  return element("table", "", element("thead", "", row("th", ...head)), element("tbody", "", ...rows));
}

async function send(method, path, inputs, body, media, output) {
  const query = new URLSearchParams();
  const headers = {};
  for (const [parameter, input] of inputs) {
    if (!input.value) continue;
    if (parameter.in === "path") path = path.replace(`{${parameter.name}}`, encodeURIComponent(input.value));
    else if (parameter.in === "query") query.append(parameter.name, input.value);
    else if (parameter.in === "header") headers[parameter.name] = input.value;
  }
  const key = document.getElementById("key").value.trim();
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = media;
  const address = query.size ? `${path}?${query}` : path;
  output.hidden = false;
  output.textContent = `${method} ${address} …`;
  try {
    const response = await fetch(address, { method, headers, body: body ? body.value : undefined });
    const text = await response.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON */ }
    output.textContent = `${response.status} ${response.statusText}\n\n${shown}`;
  } catch (error) {
    output.textContent = String(error);
  }
}

function operation(method, path, told) {
  const made = element("details");
  const name = element("code", path);
  made.append(element("summary", "", Object.assign(element("span", method), { className: "method" }), name, ` ${told.summary}`));
  made.append(element("p", told.description));
  const inputs = [];
  if (told.parameters?.length) {
    const rows = told.parameters.map((parameter) => {
      const input = element("input");
      input.setAttribute("aria-label", parameter.name);
      inputs.push([parameter, input]);
      return row("td", element("code", parameter.name), parameter.description ?? "", input);
    });
    made.append(table(["parameter", "description", "value"], rows));
  }
  let body = null;
  let media = "";
  if (told.requestBody) {
    let content;
    [[media, content]] = Object.entries(told.requestBody.content);
    body = element("textarea");
    body.setAttribute("aria-label", "body");
    body.value = example(content);
    made.append(element("p", `Body (${media}). ${told.requestBody.description ?? ""}`), body);
  }
  const output = element("pre");
  output.hidden = true;
  const button = element("button", "Send");
  button.type = "button";
  button.addEventListener("click", () => send(method, path, inputs, body, media, output));
  made.append(element("p", "", button), output);
  const statuses = Object.entries(told.responses).map(([status, response]) => row("td", status, response.description));
  made.append(table(["status", "meaning"], statuses));
  for (const [type, content] of Object.entries(told.responses["200"]?.content ?? {})) {
    const shown = example(content);
    if (shown) made.append(element("p", `Example (${type})`), element("pre", shown));
  }
  return made;
}

async function load() {
  const place = document.getElementById("operations");
  try {
    const told = await (await fetch("/openapi.json")).json();
    const groups = new Map();
    for (const [path, item] of Object.entries(told.paths)) {
      for (const [method, one] of Object.entries(item)) {
        const tag = one.tags?.[0] ?? "other";
        if (!groups.has(tag)) groups.set(tag, []);
        groups.get(tag).push(operation(method.toUpperCase(), path, one));
      }
    }
    place.replaceChildren(element("p", `Version ${told.info.version}. ${told.info.summary ?? ""}`));
    for (const [tag, made] of groups) place.append(element("h2", tag), ...made);
  } catch (error) {
    place.textContent = String(error);
  }
}

load();
