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

// The six questions.

function wrong() {
  const s = now.servers, dead = holders().filter(h => h.e.dead);
  const items = [
    stale() && ["bad", el("strong", {}, lost ? "This page has lost menagerie ui" : "The view is old: " + show(beat.outage)), ". What is below may no longer be so"],
    ...(s?.findings ?? []).map(f => [f.severity === "problem" ? "bad" : "warn", el("strong", {}, show(f.text, 400)), " " + show(f.fix, 400), f.server && " (" + show(f.server) + ")"]),
    now.cycles.length && ["bad", el("strong", {}, many(now.cycles.length, "deadlock")), " among the locks below: release one hold of each"],
    dead.length && ["bad", el("strong", {}, many(dead.length, "holder is", "holders are")), " probably dead: see below"],
    ...(now.denied ?? []).map(p => ["warn", el("strong", {}, bdi(p)), " may not be read: see --auth"]),
    now.missing && ["warn", el("strong", {}, bdi(now.root), " does not exist"), ": the page shows it when it comes"],
    now.left && ["warn", el("strong", {}, many(now.left, "path")), " more are not shown: look at a smaller part with menagerie ui PATH"],
  ].filter(Boolean);
  $("wrong").classList.toggle("alarm", items.some(i => i[0] === "bad"));
  const mode = v => v.error ? el("span", {class: "bad"}, show(v.error, 300)) : v.serves ? el("span", {class: "good"}, "serves") : v.reachable ? el("span", {class: "warn"}, "answers") : el("span", {class: "bad"}, "not reachable");
  return [
    el("h3", {}, "Is anything wrong?"),
    items.length ? el("ul", {class: "items"}, items.map(([kind, ...text]) => el("li", {class: kind}, text))) : el("p", {class: "good"}, "Nothing that this page can see."),
    s?.servers?.length ? table("Servers", ["Server", "State", "Mode", "Version", "Latency", "Connections", "Behind"], s.servers, v => [
      bdi(v.addr), mode(v), show(v.mode) || "unknown", show(v.version) || "unknown", v.latencyMs >= 0 ? v.latencyMs.toFixed(1) + " ms" : "unknown",
      v.connections >= 0 ? String(v.connections) : "unknown", v.zxidLag > 0 ? many(v.zxidLag, "transaction") : v.zxidLag === 0 ? "no" : "unknown"])
      : el("p", {class: "note"}, "The servers themselves have not been looked at."),
  ];
}

const scope = () => now.objects.filter(o => !chosen || o.path === chosen);
const inScope = test => scope().flatMap(o => o.entries.filter(test).map(e => ({e, o})));
const holders = () => now.objects.flatMap(o => o.entries.filter(e => e.state !== "waiting").map(e => ({e, o})));

function holds(items) {
  items.sort((a, b) => b.e.ratio - a.e.ratio || b.e.forMs - a.e.forMs);
  const heads = [...(chosen ? [] : ["Path"]), "Holder", "Held for", "Usual", "Beside the usual", ...(now.release ? ["Action"] : [])];
  const o = chosen && scope()[0];
  return [
    el("h3", {}, "Who holds, and for how long?"),
    items.length ? table("Holders", heads, items, ({e, o}) => [
      ...(chosen ? [] : [link(o.path, "hold " + e.node)]), [owner(e), e.state !== "held" && el("small", {}, show(e.state))], since(e), usual(o),
      aged("span", s => { [s.textContent, s.className] = beside(e, o); }), ...(now.release ? [button(e, o, "h")] : [])])
      : el("p", {class: "note"}, "No process holds anything here."),
    o && o.usual.holds > 0 && histogram(o, items),
  ];
}

// histogram has a row for each bucket from the first one that is not empty, and marks where the holds of now are.
function histogram(o, items) {
  const counts = o.usual.counts, most = Math.max(...counts.map(c => c.holds)), first = counts.findIndex(c => c.holds);
  const here = (low, high) => items.some(({e}) => e.since && age(e) > low && age(e) <= high) ? "this hold" : "";
  const line = (limit, n, mark) => el("tr", {class: mark && "here"}, el("td", {class: "num"}, limit),
    el("td", {}, el("svg", {"aria-hidden": "true"}, el("rect", {x: 0, y: 2, height: 12, rx: 2, width: n / most * 100 + "%"}))), el("td", {class: "num"}, [n || "", mark].filter(Boolean).join(", ")));
  const rows = counts.slice(first).map((c, i) => line("up to " + duration(c.upToMs), c.holds, here(counts[first + i - 1]?.upToMs ?? 0, c.upToMs)));
  const beyond = here(counts.at(-1).upToMs, Infinity);
  return el("table", {class: "histogram", "aria-label": "Hold times"},
    el("thead", {class: "vh"}, el("tr", {}, ["Hold time", "", "Holds"].map(h => el("th", {scope: "col"}, h)))), el("tbody", {}, rows, beyond && line("longer", 0, beyond)));
}

function waits(items) {
  items.sort((a, b) => chosen ? a.e.position - b.e.position : b.e.forMs - a.e.forMs);
  const heads = [...(chosen ? [] : ["Path"]), "Waiter", "Waits for", "Behind", ...(now.release ? ["Action"] : [])];
  return [
    el("h3", {}, "Who waits, and behind whom?"),
    items.length ? table("Waiters", heads, items, ({e, o}) => [
      ...(chosen ? [] : [link(o.path, "wait " + e.node)]), owner(e), [since(e), e.stuck && el("small", {class: "bad"}, "never granted: in or behind a deadlock")],
      e.ahead ? bdi(entries.has(e.ahead) ? who(entries.get(e.ahead).e) : e.behind) : "unknown", ...(now.release ? [button(e, o, "w")] : [])])
      : el("p", {class: "note"}, "No process waits here."),
  ];
}

function graph(edges) {
  const red = now.cycles.filter(c => !chosen || c.steps.some(s => s.path === chosen));
  $("graph").classList.toggle("alarm", red.length > 0);
  return [
    el("h3", {}, "Who waits for whom?"),
    red.length > 0 && el("ul", {class: "items"}, red.slice(0, 20).map(c => el("li", {class: "bad"}, el("strong", {}, c.certain ? "Deadlock: " : "Probably a deadlock: "), bdi(c.text, 1000)))),
    red.length > 20 && el("p", {}, `and ${red.length - 20} more deadlocks`),
    edges.length ? draw(edges) : el("p", {class: "note"}, "There are no waits to draw."),
  ];
}

function dead(items) {
  const tells = now.servers?.tells || items.length > 0;
  return [
    el("h3", {}, "Which holders are probably dead?"),
    items.length ? el("ul", {class: "items"}, items.slice(0, 50).map(({e, o}) => el("li", {class: e.dead ? "bad" : "warn"}, bdi(who(e)), " holds ", link(o.path, "dead " + e.node), ": ",
      el("strong", {}, show(e.heard) || "probably dead"), " ", button(e, o, "d"))))
      : el("p", {class: "note"}, stale() ? "Not known: the view is old." : tells ? "None: the servers have heard of every holder."
        : "The servers do not tell: they would with 4lw.commands.whitelist=srvr,cons,dump in their configuration."),
  ];
}

function todo(items) {
  const blocks = new Set(now.cycles.flatMap(c => c.steps.map(s => s.blocker.node)));
  const some = items.filter(({e, o}) => removable(e, o) && (chosen || e.dead || blocks.has(e.node))).slice(0, 5);
  return [
    el("h3", {}, "What can I do?"),
    el("p", {}, "Releasing removes one entry from the servers. If it is a hold, the next waiter is granted at once, also if the old holder still works; its lease ends, and ",
      "a store that compares tokens refuses what it writes late."),
    now.release ? el("p", {class: "note"}, "Use the button beside an entry. It removes only what it shows.")
      : el("p", {class: "note"}, "This page is read-only (menagerie ui --allow-release has buttons). ", some.length ? "Each of these commands removes a hold:" : "Choose a path that is held for its command."),
    ...(now.release ? [] : some.map(({e, o}) => {
      const said = el("button", {type: "button", "data-key": "copy " + e.node, click: async () => {
        await navigator.clipboard.writeText(command(e, o)).then(() => { said.textContent = "Copied"; }, () => getSelection().selectAllChildren(code));
      }}, "Copy");
      const code = el("code", {}, show(command(e, o), 4000));
      return [el("p", {class: "note"}, `${show(who(e))} at ${show(o.path)}:`), el("div", {class: "copy"}, code, said)];
    })),
  ];
}

// The graph of waits: owners, and an arrow for each wait. It has what hangs together with the chosen path, or with deadlocks.

const ownerKey = e => e.session || who(e);

function links() {
  const same = new Map(), all = [], inCycle = new Set(now.cycles.flatMap(c => c.steps.map(s => s.wait.node)));
  const key = e => { let k = ownerKey(e); for (let n = 0; same.has(k) && n < 20; n++) k = same.get(k); return k; };
  const add = (from, to, path, red, ...names) => key(from) !== key(to) && all.push({from: key(from), to: key(to), path, red, names: names.map(who)});
  const steps = now.cycles.flatMap(({steps: c}) => c.map((s, i) => ({...s, next: c[(i + 1) % c.length].wait, holds: c.at(i - 1).blocker})));
  // The hold that a wait is for may be of another process than the next wait: one that runs it. Both are one owner, with the name of the first.
  for (const s of steps) if (key(s.blocker) !== key(s.next)) same.set(key(s.blocker), key(s.next));
  for (const s of steps) add(s.wait, s.next, s.path, true, s.holds, s.blocker);
  for (const {e, o} of entries.values()) {
    const ahead = entries.get(e.ahead);
    if (ahead && e.state === "waiting" && !inCycle.has(e.node)) add(e, ahead.e, o.path, false, e, ahead.e);
  }
  return all;
}

const maxOwners = 16;

// nearby are the links that hang together with the chosen path, as many as can be read.
function nearby() {
  const all = links();
  const seeds = all.filter(l => chosen ? l.path === chosen : l.red);
  const owners = new Set();
  const from = seeds.length || chosen ? seeds : all;
  const near = new Map();
  for (const l of all) for (const k of [l.from, l.to]) near.set(k, [...(near.get(k) ?? []), l]);
  const queue = from.flatMap(l => [l.to, l.from]);
  for (let i = 0; i < queue.length && owners.size < maxOwners; i++) {
    if (owners.has(queue[i])) continue;
    owners.add(queue[i]);
    for (const l of near.get(queue[i])) queue.push(l.to, l.from);
  }
  const kept = all.filter(l => owners.has(l.from) && owners.has(l.to));
  kept.left = new Set(queue).size - owners.size;
  return kept;
}

// levels puts owners into rows: those that wait for none, or that are in a cycle, first; then those that wait for them.
function levels(edges) {
  const names = new Map(), level = new Map();
  for (const l of edges) for (const [i, k] of [l.from, l.to].entries()) if (!names.has(k)) names.set(k, l.names[i]);
  for (const k of names.keys()) {
    if (edges.some(l => l.red && l.from === k) || !edges.some(l => l.from === k)) level.set(k, 0);
  }
  if (!level.size) level.set(names.keys().next().value, 0);
  for (let changed = true; changed;) {
    changed = false;
    for (const l of edges) {
      if (level.has(l.to) && !level.has(l.from)) { level.set(l.from, level.get(l.to) + 1); changed = true; }
    }
  }
  for (const k of names.keys()) if (!level.has(k)) level.set(k, 0);
  return {names, level};
}

function draw(edges) {
  const {names, level} = levels(edges), at = new Map(), rows = [];
  const wide = Math.max($("graph").clientWidth - 34, 250), most = Math.max(1, Math.min(5, Math.floor(wide / 210)));
  for (let n = 0; n <= Math.max(...level.values()); n++) {
    const keys = [...names.keys()].filter(k => level.get(k) === n);
    while (keys.length) rows.push(keys.splice(0, most));
  }
  const step = Math.min(wide / Math.max(...rows.map(r => r.length)), 320), w = Math.min(step - 60, 190), h = 32, gap = 50, top = edges.some(l => l.red) ? 44 : 8;
  rows.forEach((keys, r) => keys.forEach((k, i) => at.set(k, {x: wide / 2 + (i - (keys.length - 1) / 2) * step, y: top + r * (h + gap)})));
  const high = top + rows.length * (h + gap) - gap + top;
  const arrows = edges.map(l => arrow(l, at.get(l.from), at.get(l.to), w, h));
  const tip = (id, cls) => el("marker", {id, class: cls, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"}, el("path", {d: "M0 0 8 4 0 8z"}));
  const boxes = [...names].map(([k, name]) => {
    const {x, y} = at.get(k);
    return el("g", {class: edges.some(l => l.red && l.from === k) && "red"}, el("rect", {x: x - w / 2, y, width: w, height: h, rx: 6}), el("text", {x, y: y + 20}, show(name, Math.floor(w / 7.6))));
  });
  return [
    el("svg", {viewBox: `0 0 ${wide} ${high}`, height: high, role: "img", "aria-label": many(names.size, "owner") + ", " + many(edges.length, "wait")},
      el("defs", {}, tip("tip", ""), tip("tip-red", "red")), arrows.map(a => a[0]), boxes, arrows.map(a => a[1])),
    edges.left > 0 && el("p", {class: "note"}, many(edges.left, "more owner is", "more owners are") + " left out."),
    el("ul", {class: "vh"}, edges.map(l => el("li", {}, `${show(l.names[0])} waits for ${show(l.names[1])}: ${show(l.path)}${l.red ? ", in a deadlock" : ""}`))),
  ];
}

// arrow is a curve from the owner at a to the one at b, and its label.
function arrow(l, a, b, w, h) {
  let from, to, bend;
  if (a.y === b.y) { // beside each other: to the right above, to the left below
    const up = a.x < b.x, y = up ? a.y : a.y + h, off = w / 4 * Math.sign(b.x - a.x);
    [from, to] = [{x: a.x + off, y}, {x: b.x - off, y}];
    bend = {x: (from.x + to.x) / 2, y: y + (up ? -1 : 1) * (50 + Math.abs(a.x - b.x) / 40)};
  } else {
    const up = a.y > b.y;
    const shift = w / 5 * (up ? -1 : 1); // so that two arrows between the same owners do not lie on each other
    [from, to] = [{x: a.x + shift, y: up ? a.y : a.y + h}, {x: b.x + shift, y: up ? b.y + h : b.y}];
    bend = {x: (from.x + to.x) / 2 + shift, y: (from.y + to.y) / 2};
  }
  const label = {x: (from.x + to.x + 2 * bend.x) / 4, y: (from.y + to.y + 2 * bend.y) / 4 + 4};
  return [
    el("path", {class: l.red && "red", d: `M${from.x} ${from.y} Q${bend.x} ${bend.y} ${to.x} ${to.y}`, "marker-end": l.red ? "url(#tip-red)" : "url(#tip)"}),
    el("text", {class: l.red ? "on red" : "on", x: label.x, y: label.y}, show(l.path, 26)),
  ];
}

// The list of paths. Only the rows that can be seen are made.

const rowHeight = 48;
const wanted = () => $("filter").value.trim().toLowerCase();

function summary(o) {
  const held = o.entries.filter(e => e.state === "held"), waiting = o.entries.filter(e => e.state === "waiting").length;
  const stuck = o.entries.some(e => e.stuck), gone = o.entries.some(e => e.dead);
  const words = [stuck && "deadlock", gone && "holder probably dead",
    !held.length && !waiting ? show(o.detail || o.state) : held.length === 1 ? "held by " + show(who(held[0])) : held.length ? many(held.length, "hold") : "free", waiting && waiting + " wait"];
  const long = held.some(e => beside(e, o)[1] === "bad");
  return {kind: stuck || gone ? "bad" : long ? "warn" : "", text: show(o.kind) + ": " + words.filter(Boolean).join(", ") + (long ? ", held far longer than usual" : "")};
}

function matches(o, text) {
  return !text || o.path.toLowerCase().includes(text) || o.entries.some(e => `${e.owner.host} ${e.owner.name} ${e.owner.pid}`.toLowerCase().includes(text));
}

function list() {
  const text = wanted();
  shown = [null, ...now.objects.filter(o => matches(o, text))];
  $("count").textContent = shown.length - 1 === now.objects.length ? many(now.objects.length, "path") : `${shown.length - 1} of ${many(now.objects.length, "path")}`;
  rows();
}

function rows() {
  const box = $("list"), first = Math.max(Math.floor(box.scrollTop / rowHeight) - 5, 0);
  const last = Math.min(first + Math.ceil(box.clientHeight / rowHeight) + 10, shown.length);
  const inner = el("div", {id: "rows"});
  inner.style.height = shown.length * rowHeight + "px";
  for (let i = first; i < last; i++) {
    const o = shown[i], path = o?.path ?? "", {kind, text} = o ? summary(o) : {kind: "", text: "all that is below " + show(now.root, 60)};
    const row = el("div", {role: "option", id: "row-" + i, class: "row " + kind, "aria-selected": path === chosen ? "true" : "false", "aria-setsize": shown.length, "aria-posinset": i + 1, click: () => choose(path)},
      o ? bdi(path, 100) : el("span", {}, "Everything"), el("small", {}, text));
    row.style.top = i * rowHeight + "px";
    inner.append(row);
  }
  const at = box.scrollTop;
  box.replaceChildren(inner);
  box.scrollTop = at;
  const index = shown.findIndex(o => (o?.path ?? "") === chosen);
  if (index >= first && index < last) box.setAttribute("aria-activedescendant", "row-" + index);
  else box.removeAttribute("aria-activedescendant");
}

function choose(path) {
  chosen = path;
  history.replaceState(null, "", path ? "#" + encodeURIComponent(path) : location.pathname);
  const index = shown.findIndex(o => (o?.path ?? "") === path), box = $("list");
  if (index >= 0) box.scrollTop = Math.min(Math.max(box.scrollTop, (index + 1) * rowHeight - box.clientHeight), index * rowHeight);
  render();
}

function move(by) {
  const index = shown.findIndex(o => (o?.path ?? "") === chosen);
  const next = shown[Math.min(Math.max(index + by, 0), shown.length - 1)];
  choose(next?.path ?? "");
}

// The whole.

const stale = () => lost || !now || Boolean(beat.outage);

function render() {
  if (!now) return;
  if (chosen && !now.objects.some(o => o.path === chosen)) $("about").textContent = "This path has gone, or is not there yet.";
  else if (!chosen) $("about").textContent = `${many(now.objects.length, "path")} below ${show(now.root)}`;
  else {
    const o = scope()[0], queue = o.entries.some(e => e.state === "held" || e.state === "waiting");
    $("about").textContent = [show(o.kind), !queue && show(o.detail, 300), o.count != null && o.total != null && `${o.count} of ${o.total}`,
      o.grantsPerSecond > 0 && o.grantsPerSecond.toFixed(1) + " grants per second"].filter(Boolean).join(" · ");
  }
  $("title").replaceChildren(chosen ? bdi(chosen, 400) : "Everything");
  const h = inScope(e => e.state !== "waiting"), w = inScope(e => e.state === "waiting"), d = holders().filter(({e}) => e.dead || e.heard), edges = nearby();
  section("wrong", [lost, beat.outage, now.servers, now.cycles.length, d.length, now.denied, now.left, now.missing], wrong);
  section("holds", [chosen, h], () => holds(h));
  section("waits", [chosen, w], () => waits(w));
  section("graph", [chosen, edges, edges.left, now.cycles, $("graph").clientWidth], () => graph(edges));
  section("dead", [stale(), d, now.servers?.tells], () => dead(d));
  section("do", [chosen, h, now.command, now.cycles.map(c => c.steps)], () => todo(h));
  list();
  tick();
}

// tick is what passing time changes.
function tick() {
  if (!beat) return;
  const old = duration(Date.parse(beat.now) - Date.parse(beat.at) + performance.now() - heard);
  const never = beat.at.startsWith("0001");
  $("status").textContent = lost ? `as of ${old} ago; this page has lost menagerie ui` : beat.outage ? (never ? beat.outage : `as of ${old} ago; ${beat.outage}`) : "live";
  const alarm = lost ? "This page has lost menagerie ui: it has ended, or does not answer. What is shown is old, and actions are off."
    : beat.outage ? "The view is old: " + beat.outage + ". Actions are off." : "";
  $("alert").hidden = !alarm;
  if ($("alert").textContent !== alarm) {
    $("alert").textContent = alarm; // read aloud once
    render();
  }
  document.body.classList.toggle("stale", stale());
  for (const b of document.querySelectorAll("button.act")) b.disabled = stale();
  if (!stale()) Object.values(aging).flat().forEach(update => update());
  check();
}

// Releasing.

let asked = null; // the entry that the dialog shows, as it was shown

const stands = () => asked && asked.o.path && entries.get(asked.e.node)?.e.token === asked.e.token && entries.get(asked.e.node).e.state === asked.e.state;

function ask(e, o) {
  asked = {e, o, done: false};
  const waits = o.entries.filter(x => x.state === "waiting" && x.node !== e.node), holds = e.state !== "waiting";
  const others = o.entries.some(x => x.state === "held" && x.node !== e.node), next = waits.find(x => x.ahead === e.node) ?? waits[0];
  $("ask-title").textContent = holds ? "Release this hold?" : "Remove this waiter?";
  $("ask-what").replaceChildren(
    el("p", {}, bdi(who(e)), holds ? " holds " : " waits for ", bdi(o.path, 400), e.since ? ` since ${show(e.since)}, for ${duration(age(e))}.` : "."),
    el("p", {class: "note"}, owner(e)[1].textContent),
    el("p", {}, holds ? "Then " : "Then it loses its place; if its process is alive, it queues again at the end.", holds && (others ? "the other holders remain, " : next ? [bdi(who(next)), " is granted, "] : "the lock is free, "),
      holds && "also if the holder is alive and still works. It learns that its lease has ended; it cannot undo what it has done."));
  $("reason").value = "";
  $("ask-result").textContent = "";
  $("ask-no").textContent = "Cancel";
  check();
  $("ask").showModal();
  $("reason").focus();
}

function check() {
  if (!asked || !$("ask").open && $("ask-what").childElementCount === 0) return;
  const can = !asked.done && !stale() && stands();
  $("ask-yes").disabled = !can;
  if (!can && !asked.done) $("ask-result").textContent = stale() ? "The view is old, so this is off." : "It is gone, or no longer what is shown here: nothing to release.";
}

async function release() {
  const {e, o} = asked;
  asked.done = true;
  check();
  $("ask-result").textContent = "Removing…";
  try {
    const answer = await fetch("api/release", {method: "POST", headers: {"Content-Type": "application/json", "X-Menagerie": "1"},
      body: JSON.stringify({path: o.path, node: e.node, token: e.token, state: e.state, reason: $("reason").value})});
    const said = await answer.json();
    $("ask-result").textContent = answer.ok ? "Removed." + (said.told ? " Its process has read the reason." : e.state === "held" ? " Its process has not read the reason yet." : "") : show(said.error, 500);
  } catch {
    $("ask-result").textContent = "menagerie ui has not answered: it is not known whether it was removed. Look again.";
  }
  $("ask-no").textContent = "Close";
}

// What menagerie ui sends.

function listen() {
  const stream = new EventSource("api/events");
  const hear = (take) => event => {
    const data = JSON.parse(event.data);
    heard = performance.now();
    lost = false;
    take(data);
  };
  stream.addEventListener("state", hear(data => {
    now = beat = data;
    entries = new Map(now.objects.flatMap(o => o.entries.filter(e => e.node).map(e => [e.node, {e, o}])));
    $("root").textContent = show(now.root, 80);
    render();
  }));
  stream.addEventListener("beat", hear(data => { beat = data; tick(); }));
  stream.onerror = () => {
    lost = true;
    tick();
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 3000);
  };
}

// Keys.

const themes = {system: "◐ system", light: "◐ light", dark: "◐ dark"};

function theme(name) {
  document.documentElement.dataset.theme = name;
  $("theme").textContent = themes[name];
  try { localStorage.setItem("menagerie-theme", name); } catch { /* it is not kept then */ }
}

function nextTheme() {
  const names = Object.keys(themes);
  theme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
}

const keys = {
  "/": () => $("filter").focus(),
  "?": () => $("help").showModal(),
  t: nextTheme,
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
  Escape: () => {
    if (wanted()) $("filter").value = "";
    else chosen = "";
    choose(chosen);
    $("list").focus();
  },
};

document.addEventListener("keydown", event => {
  const at = document.activeElement, typing = at.tagName === "INPUT", press = at.tagName === "BUTTON" || at.tagName === "A";
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Enter" && !press) {
    if (at === $("filter") && shown.length > 1) choose(shown[1].path);
    $("title").focus();
  } else if (keys[event.key] && !(typing && event.key.length === 1) && !($("main").contains(at) && event.key.startsWith("Arrow"))) {
    keys[event.key]();
  } else return;
  event.preventDefault();
});

function begin() {
  document.querySelector(".tools").hidden = $("app").hidden = false;
  let kept = null;
  try { kept = localStorage.getItem("menagerie-theme"); } catch { /* as the system */ }
  theme(themes[kept] ? kept : "system");
  try { chosen = decodeURIComponent(location.hash.slice(1)); } catch { /* not an address of this page */ }
  $("theme").addEventListener("click", nextTheme);
  $("keys").addEventListener("click", keys["?"]);
  $("help-close").addEventListener("click", () => $("help").close());
  $("filter").addEventListener("input", () => now && list());
  $("list").addEventListener("scroll", () => now && rows());
  addEventListener("resize", () => now && render());
  $("ask-no").addEventListener("click", () => $("ask").close());
  $("ask-yes").addEventListener("click", release);
  $("ask").addEventListener("close", () => { if (!$("ask").open) asked = null; }); // it may be open again by now
  $("reason").addEventListener("keydown", event => { if (event.key === "Enter" && !$("ask-yes").disabled) release(); });
  setInterval(() => { // a program that is stopped closes nothing
    if (heard && performance.now() - heard > 5000) lost = true;
    tick();
  }, 1000);
  listen();
}

begin();
