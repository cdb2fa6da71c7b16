"use strict";
// The page of menagerie ui. Every text of the servers goes into the page by textContent or setAttribute, never as HTML.

const $ = id => document.getElementById(id);
let now = null;      // the newest state that menagerie ui has sent
let beat = null;     // its newest {now, at, outage}
let heard = 0;       // when that came, by performance.now()
let lost = false;    // menagerie ui does not answer this page
let chosen = "";     // the path that is shown; "" is everything
let shown = [];      // the objects of the list
let entries = new Map(); // of all objects, by node: {e, o}
const more = {};     // how many rows of a table are shown, by its name

// Texts.

const odd = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;

// show makes a text of the servers harmless for the eye: nothing in it turns the direction, hides, or is endless.
function show(text, most = 160) {
  text = String(text ?? "");
  if (text.length > most) {
    text = text.slice(0, most * 2 / 3) + "…" + text.slice(-most / 3);
  }
  return text.replace(odd, c => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

function duration(ms) {
  const s = Math.floor(ms / 1000);
  if (ms < 1000) return Math.floor(ms) + " ms";
  if (s < 10) return (ms / 1000).toFixed(1) + " s";
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + s % 60 + " s";
  if (s < 48 * 3600) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}

const many = (n, one, others = one + "s") => n + " " + (n === 1 ? one : others);
const time = () => Date.parse(beat.now) + (lost ? 0 : Math.min(performance.now() - heard, 2000));
const age = e => Math.max(time() - Date.parse(e.since), 0);

function who(e) {
  const {host, pid, name} = e.owner;
  return [host, pid ? "pid " + pid : ""].filter(Boolean).join(" ") || name || (e.session ? "session " + e.session : "unknown");
}

const quote = text => /^[\w/.:,=@%+-]+$/.test(text) ? text : "'" + text.replaceAll("'", "'\\''") + "'";
const command = (e, o) => `${now.command} ${quote(o.path)} --node ${quote(e.node.slice(e.node.lastIndexOf("/") + 1))}`;

// Elements.

function el(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "text", "path", "g", "defs", "marker"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "click") made.addEventListener("click", value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.flat(3).filter(c => c != null && c !== false));
  return made;
}

const bdi = (text, most) => el("bdi", {}, show(text, most));
const link = (path, key) => el("button", {type: "button", class: "link mono", "data-key": key, click: () => choose(path)}, bdi(path));

// table has a row for each item, and a button for more if they are many.
function table(name, heads, items, row) {
  const most = more[name] ?? 50;
  const body = items.slice(0, most).map(item =>
    el("tr", {role: "row"}, row(item).map((cell, i) => el("td", {role: "cell", "data-label": heads[i]}, cell))));
  return [
    el("table", {role: "table", "aria-label": name},
      el("thead", {role: "rowgroup"}, el("tr", {role: "row"}, heads.map(h => el("th", {scope: "col", role: "columnheader"}, h)))),
      el("tbody", {role: "rowgroup"}, body)),
    items.length > most && el("button", {type: "button", "data-key": "more " + name, click: () => { more[name] = most + 200; render(); }},
      `Show more: ${items.length - most} are left`),
  ];
}

// Sections. Each is made again only when what it shows has changed; meanwhile its ages grow.

const made = {}, aging = {};
let current = null; // the section that is being made

function section(id, inputs, build) {
  const key = JSON.stringify([inputs, more, now.release], (name, value) => name === "forMs" || name === "ratio" ? undefined : value);
  if (made[id] === key) return;
  made[id] = key;
  aging[id] = [];
  current = id;
  const focus = $(id).contains(document.activeElement) && document.activeElement.dataset.key;
  $(id).replaceChildren(...build().flat(3).filter(Boolean));
  if (focus) [...$(id).querySelectorAll("[data-key]")].find(e => e.dataset.key === focus)?.focus({preventScroll: true});
}

// aged is an element that update changes as time passes.
function aged(tag, update) {
  const made = el(tag);
  update(made);
  aging[current].push(() => update(made));
  return made;
}

const since = e => e.since ? aged("span", s => { s.className = "num"; s.textContent = duration(age(e)); }) : "unknown";

// beside says in words how long a hold is beside what is usual.
function beside(e, o) {
  const u = o.usual;
  if (!u.holds || !e.since) return ["unknown", "note"];
  const ms = age(e), times = ms / Math.max(u.medianMs, 1);
  const text = times < 10 ? times.toFixed(1) : Math.round(times);
  if (ms <= Math.max(u.p99Ms, 2 * u.medianMs)) return ["as usual", "good"];
  if (times < 5) return [`longer than usual: ${text} times`, "warn"];
  return [`far longer than usual: ${text} times`, "bad"];
}

const usual = o => o.usual.holds
  ? [`median ${duration(o.usual.medianMs)}`, el("small", {}, `p99 ${duration(o.usual.p99Ms)}, of ${many(o.usual.holds, "hold")}`)] : el("small", {}, "no hold was seen to end yet");

const owner = e => [bdi(who(e)), el("small", {}, [e.owner.name && who(e) !== e.owner.name ? "name " + show(e.owner.name) : "", e.id && "candidate " + show(e.id),
  e.permits ? many(e.permits, "permit") : "", e.session && "session " + e.session, e.token && "token " + e.token].filter(Boolean).join(" · "))];

const removable = (e, o) => e.node && e.token && ["lock", "rwlock", "election", "semaphore", "read-write lock"].includes(o.kind);

function button(e, o, place) {
  if (!now.release || !removable(e, o)) return "";
  return el("button", {type: "button", class: "danger act", disabled: stale(), "data-key": place + e.node,
    "aria-label": "Release " + show(o.path) + " of " + show(who(e)), click: () => ask(e, o)}, "Release…");
}
