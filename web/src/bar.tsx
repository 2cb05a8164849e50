// The header: cluster, instant, window, and the state of the recorder. The filters are below it.
import { useSignal } from "@preact/signals";
import { away } from "./api";
import { brief, count, full, local, span, toggleLocal, zone } from "./clock";
import { chosenAt, density, filtering, lastWidth } from "./data";
import { lookAtTyped, now, walk } from "./instant";
import { cursor, live, meta, shown, whole } from "./window";
import { bars } from "./density";
import { classes, clearFilter, cluster, enter, filter, filtered, focus, move, usual } from "./focus";
import { fresh, head, recording, stopped } from "./live";
import { setTheme, theme } from "./paint";
import { Driving } from "./sessions";
import { zoom } from "./strip";

export const widths: [string, number][] = [["5m", 300_000], ["15m", 900_000], ["1h", 3_600_000], ["6h", 21_600_000], ["1d", 86_400_000], ["7d", 604_800_000]];

/** widen sets the width of the window around the instant. At the end of the record the window floats. */
export function widen(ms: number): void {
  const f = focus.peek(), at = cursor.peek() ?? whole.peek()?.to ?? 0;
  if (f.at === null) move({ last: ms, from: 0, to: 0 });
  else move({ last: null, from: at - ms * 0.7, to: at + ms * 0.3 });
}

export function all(): void {
  const w = whole.peek();
  if (w) move({ last: null, from: w.from, to: w.to + 1 });
}

export function Bar({ help }: { help: () => void }) {
  const m = meta.answer.value, last = lastWidth.value, name = m?.clusters.find((c) => c.uid === m.cluster)?.name ?? "";
  return (
    <header class="bar">
      <span class="brand" title={m?.cluster}><span class="logo" aria-hidden="true">◀◀</span>{(m?.clusters.length ?? 0) > 1
        ? <select aria-label="Cluster" value={cluster.value || m?.cluster} onChange={(e) => enter(e.currentTarget.value)}>{m?.clusters.map((c) => <option key={c.uid} value={c.uid}>{c.name || c.uid}</option>)}</select>
        : <b title={name}>{name || "kuberewind"}</b>}</span>
      <Instant />
      <span class="group" role="group" aria-label="Width of the window">
        {widths.map(([label, ms]) => <button type="button" key={label} aria-pressed={last === ms} onClick={() => widen(ms)}>{label}</button>)}
        <button type="button" onClick={all} title="All of the record (0)">all</button>
        <button type="button" aria-label="Widen the window" title="Widen (−)" onClick={() => middle(1.6)}>−</button>
        <button type="button" aria-label="Narrow the window" title="Narrow (+)" onClick={() => middle(0.6)}>+</button>
      </span>
      <Badges />
      <span class="group end">
        <button type="button" onClick={toggleLocal} title="Labels in UTC or in local time (u)">{local.value ? `local ${zone(cursor.value ?? head.value?.time ?? Date.now())}` : "UTC"}</button>
        <button type="button" onClick={() => setTheme(theme.value === "dark" ? "light" : theme.value === "light" ? "auto" : "dark")} title="Dark, light, or as the system (t)">{theme.value}</button>
        <button type="button" onClick={help} aria-label="Help: all keys" title="All keys (?)">?</button>
      </span>
    </header>
  );
}

export function middle(by: number): void {
  const s = shown.peek();
  if (s) zoom(by, cursor.peek() ?? (live.peek() ? s.to : (s.from + s.to) / 2));
}

function Instant() {
  const at = chosenAt.value, time = cursor.value, w = whole.value;
  return (
    <span class={`instant ${at === null ? "live" : "past"}`}>
      <button type="button" aria-label="Previous change" title="Previous change (←)" onClick={() => walk("previous")}>←</button>
      <span class="clock" role="status" title={at === null ? "The end of the record" : `seq:${at}`}>{at === null ? (head.value ? <>{stopped.value ? "last commit" : "now"} <small>{full(head.value.time).slice(0, 19)} {zone(head.value.time)}</small></> : "…") : time ? <>{brief(time, 0)} <small>{zone(time)}, seq:{at}{w ? `, ${span(w.to - time)} before the end` : ""}</small></> : `seq:${at}`}</span>
      <button type="button" aria-label="Next change" title="Next change (→)" disabled={at === null} onClick={() => walk("next")}>→</button>
      <GoTo />
      {at === null ? null : <button type="button" class="to-now" onClick={now} title="Back to the end of the record (n)">{stopped.value ? "end" : "now"}{fresh.value > 0 ? <span class="fresh">{count(fresh.value)} new</span> : null}</button>}
    </span>
  );
}

/** GoTo reads a typed instant. If it is wrong, GoTo shows the error next to it, and keeps the text for correction. */
function GoTo() {
  const wrong = useSignal("");
  const go = async (field: HTMLInputElement) => {
    const text = field.value.trim();
    if (text === "") return;
    wrong.value = await lookAtTyped(text);
    if (wrong.peek() === "") { field.value = ""; field.blur(); }
  };
  return (
    <form class="go-to" onSubmit={(e) => { e.preventDefault(); void go(e.currentTarget.elements[0] as HTMLInputElement); }}>
      <input id="go-to" type="text" placeholder="03:12 @" autocomplete="off" aria-label="Go to an instant" aria-invalid={wrong.value !== ""} title="03:12, yesterday 14:05, 2026-11-24 18:45, 10m (ago), seq:7"
        onInput={() => { wrong.value = ""; }} onBlur={() => { wrong.value = ""; }} />
      {wrong.value ? <span class="wrong" role="alert">{wrong.value}</span> : null}
    </form>
  );
}

/** late has the reasons why the end of the record is not the present. */
const late: Record<string, string> = {
  stopped: "no recorder", starting: "the recorder begins", quiet: "nothing is committed", behind: "the recorder is behind",
};

function Badges() {
  const r = recording.value;
  return (
    <span class="badges" role="status">
      {away.value ? <span class="badge bad">{away.value}</span> : null}
      {r?.now ? <span class="badge good" title={r.text}><span aria-hidden="true">●</span> recording</span> : null}
      {r && !r.now ? <span class="badge warn" title={r.text}>{late[r.state]}</span> : null}
      {meta.failed.value ? <span class="badge bad">{meta.failed.value}</span> : null}
      <Driving />
    </span>
  );
}

export function Filters() {
  const f = filtering.value, m = meta.answer.value, more = useSignal(Boolean(f.label || f.manager || f.path || f.type)), beats = f.class.includes("heartbeat");
  const hidden = density.answer.value?.hidden?.heartbeat ?? 0, total = density.answer.value ? bars(density.answer.value).total.reduce((a, b) => a + b, 0) : 0;
  const on = (c: string) => (f.class.length === 0 ? c !== "heartbeat" : f.class.includes(c));
  return (
    <form class={`filters${more.value ? " open" : ""}`} role="search" onSubmit={(e) => e.preventDefault()}>
      <input id="search" type="search" placeholder="name  ( / )" aria-label="Name of objects" value={f.name} onInput={(e) => filter({ name: e.currentTarget.value }, "glide")} />
      <Several label="namespace" all="all namespaces" options={(m?.namespaces ?? []).map((n) => [n, n])} chosen={f.namespace} set={(namespace) => filter({ namespace })} />
      <Several label="kind" all="all kinds" options={(m?.resources ?? []).map((r) => [r.resource, r.kind === "" ? r.resource : `${r.kind} (${r.resource})`])} chosen={f.resource} set={(resource) => filter({ resource })} />
      <span class="group classes" role="group" aria-label="Classes">
        {usual.map((c) => <button type="button" key={c} class={`toggle c-${c}`} aria-pressed={on(c)} onClick={() => toggle(c)}>{c}</button>)}
        <button type="button" class="toggle c-heartbeat" aria-pressed={beats} onClick={() => toggle("heartbeat")} title="Renewals of Leases and the like (h)">{beats ? "heartbeats" : `${count(hidden)} ${hidden === 1 ? "heartbeat" : "heartbeats"} hidden`}</button>
      </span>
      <button type="button" class="opener" aria-expanded={more.value} onClick={() => { more.value = !more.value; }}>{more.value ? "fewer filters" : "more filters"}</button>
      {filtered(f) ? <button type="button" class="clear" onClick={clearFilter}>clear</button> : null}
      {more.value ? <More /> : null}
      <span class="faint total" title="in the window">{density.answer.value ? `${count(total)} ${total === 1 ? "change" : "changes"}` : ""}</span>
    </form>
  );
}

function More() {
  const f = filtering.value, field = (name: "label" | "manager" | "path", hint: string) => (
    <label>{name} <input value={f[name]} placeholder={hint} onChange={(e) => filter({ [name]: e.currentTarget.value })} /></label>
  );
  return (
    <span class="more-filters">
      {field("label", "app=cart,tier!=db")}{field("manager", "kubectl")}{field("path", "/spec/template")}
      <label>type <select value={f.type} onChange={(e) => filter({ type: e.currentTarget.value })}>{["", "Added", "Updated", "Deleted", "Sync"].map((t) => <option key={t} value={t}>{t || "any"}</option>)}</select></label>
    </span>
  );
}

/** toggle switches a class. Choosing all usual classes is the same as no choice. */
export function toggle(c: string): void {
  const f = focus.peek().filter, was = f.class.length === 0 ? usual : f.class, now = was.includes(c) ? was.filter((x) => x !== c) : [...was, c];
  const ordered = classes.filter((x) => now.includes(x)), plain = ordered.length === usual.length && !ordered.includes("heartbeat");
  filter({ class: plain || ordered.length === 0 ? [] : ordered });
}

/** Several is a choice of several values. Each chosen value is a button that removes it. */
function Several({ label, all: none, options, chosen, set }: { label: string; all: string; options: [string, string][]; chosen: string[]; set: (to: string[]) => void }) {
  return (
    <span class="several">
      <select aria-label={`Add a ${label}`} value="" onChange={(e) => { const v = e.currentTarget.value; e.currentTarget.value = ""; if (v) set([...chosen, v]); }}>
        <option value="">{chosen.length === 0 ? none : `+ ${label}`}</option>
        {options.filter(([v]) => !chosen.includes(v)).map(([v, text]) => <option key={v} value={v}>{text}</option>)}
      </select>
      {chosen.map((c) => <button type="button" key={c} class="chip" aria-label={`Without ${label} ${c}`} onClick={() => set(chosen.filter((x) => x !== c))}>{c} ×</button>)}
    </span>
  );
}
