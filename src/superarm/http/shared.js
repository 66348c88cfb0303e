"use strict"; // for every page: pages.py puts it into the script
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
// An empty drawing as wide as its place: the element, and its width.
function canvas(id, height, least = 280) {
  const svg = $(id), width = Math.max(least, svg.clientWidth);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.replaceChildren();
  return [svg, width];
}
// Lines across at some values of the scale y, from left to right, each with its text.
function gridLines(svg, values, y, left, right, text) {
  for (const v of values) {
    draw(svg, "line", { class: "axis", x1: left, x2: right, y1: y(v), y2: y(v) });
    draw(svg, "text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" }, text(v));
  }
}
// Ask the server, with the token that was typed into the form `login`; a body is posted as JSON.
// What is no success is an error with the server's sentence; without a valid token, the form is shown.
async function request(path, body) {
  const token = sessionStorage.getItem("token"), headers = token ? { Authorization: "Bearer " + token } : {};
  const posted = { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(path, body === undefined ? { headers } : posted);
  if ($("login")) $("login").hidden = response.status != 401;
  if (response.ok) return response;
  const sentence = await response.json().then(answer => answer.error.message, () => "the server responds with " + response.status);
  throw Object.assign(new Error(sentence), { status: response.status });
}
const fetchJson = async (path, body) => (await request(path, body)).json();
// Keep the token of the form `login`, and go on.
function onLogin(next) {
  $("login").onsubmit = event => { event.preventDefault(); sessionStorage.setItem("token", $("token").value.trim()); $("token").value = ""; next(); };
}
let busy = false;
// One thing at a time: what is pressed meanwhile is let go.
async function exclusively(work, onError) {
  if (busy) return;
  busy = true; $("main").classList.add("busy");
  try { await work(); } catch (error) { await onError(error); } finally { busy = false; $("main").classList.remove("busy"); }
}
