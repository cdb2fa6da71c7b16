"use strict";
// The answers of the page, each in its section. parts.js has what they are made of.

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
