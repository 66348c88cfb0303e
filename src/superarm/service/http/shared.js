"use strict"; // for every page: page_of puts it into the script
const $ = id => document.getElementById(id), NS = "http://www.w3.org/2000/svg";
const whole = n => n.toLocaleString("en"), percent = v => v == null || !isFinite(v) ? "–" : (100 * v).toFixed(1) + "\u00a0%";
function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  if (options.class) node.className = options.class;
  if (options.text != null) node.textContent = options.text;
  if (options.title != null) node.title = options.title;
  if (options.width != null) node.style.width = options.width;
  node.append(...children);
  return node;
}
function draw(parent, tag, attributes, text) {
  const node = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text != null) node.textContent = text;
  parent.append(node);
  return node;
}
// Ask the server; a body is posted as JSON. What is no success is an error with the server's sentence.
async function request(path, body, headers = {}) {
  const posted = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, body === undefined ? { headers } : posted);
  if (!response.ok) throw Object.assign(new Error((await response.json()).error.message), { status: response.status });
  return response;
}
let busy = false;
// One thing at a time: what is pressed meanwhile is let go.
async function exclusively(work, onError) {
  if (busy) return;
  busy = true; $("main").classList.add("busy");
  try { await work(); } catch (error) { await onError(error); } finally { busy = false; $("main").classList.remove("busy"); }
}
