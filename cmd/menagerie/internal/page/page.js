"use strict";
// What a user does with the page, and what menagerie ui sends. questions.js has the answers.

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
