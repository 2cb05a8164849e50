// Small components that panels share. Text from a cluster is always set as text.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { brief, count, full } from "./clock";
import { look, of } from "./instant";
import { whole } from "./window";
import { grouped, type Group } from "./density";
import { move } from "./focus";
import type { Change, Incomplete, Ref } from "./model";

export const named = (r: Ref) => `${r.namespace ? `${r.namespace}/` : ""}${r.name}`;

/** Link goes to an object at the current instant. */
export function Link({ to }: { to: Ref }) {
  return <button type="button" class="link" onClick={() => move(of(to))}><span class="kind">{to.kind}</span> {named(to)}</button>;
}

/** When goes to an instant. */
export function When({ seq, time, more }: { seq: number; time: number; more?: Ref }) {
  return <button type="button" class="when" title={`${full(time)}, seq:${seq}`} onClick={() => look(seq, time, more ? of(more) : {})}>{brief(time, whole.value?.to ?? time)}</button>;
}

export function Class({ of: name }: { of: string }) {
  return <span class={`class c-${/^[a-z]+$/.test(name) ? name : "change"}`}>{name}</span>;
}

/** Writer names the writer only if the version proves it; else it says that there is no proof. */
export function Writer({ manager, evidence, hint }: { manager?: string; evidence?: string; hint?: string }) {
  if (manager) return <span class="writer" title={evidence ? `proved: ${evidence}` : "proved by the version"}>by <b>{manager}</b></span>;
  return <span class="writer unproved" title={evidence ?? ""}>{hint ? `writer not proved; ${hint}` : "writer not proved"}</span>;
}

export function Command({ text }: { text: string }) {
  const done = useSignal(false);
  if (!text) return null;
  const copy = () => void navigator.clipboard.writeText(text).then(() => { done.value = true; setTimeout(() => { done.value = false; }, 1500); }, () => undefined);
  return <p class="command"><code>{text}</code><button type="button" data-copy={text} onClick={copy}>{done.value ? "copied" : "copy"}</button></p>;
}

export function value(v: unknown): string {
  if (v === undefined) return "";
  return typeof v === "string" ? v : JSON.stringify(v, null, typeof v === "object" && JSON.stringify(v).length > 60 ? 2 : 0);
}

const most = 12;

/** Diff shows paths with old and new values. A long list is cut, with the number of hidden entries, and can be opened. */
export function Diff({ changes, short = false }: { changes: Change[]; short?: boolean }) {
  const all = useSignal(false), limit = short ? 3 : most * 5, seen = all.value ? changes : changes.slice(0, limit), rest = changes.length - seen.length;
  return (
    <ul class={`diff${short ? " short" : ""}`}>
      {seen.map((c, i) => <li key={i}><Path op={c.op} path={c.from ? `${c.from} → ${c.path}` : c.field || c.path} />{c.old !== undefined ? <Side is="old" of={c.old} /> : null}{c.new !== undefined ? <Side is="new" of={c.new} /> : null}</li>)}
      {rest > 0 ? <li><button type="button" class="more" onClick={(e) => { e.stopPropagation(); all.value = true; }}>{count(rest)} more {rest === 1 ? "path" : "paths"}</button></li> : null}
    </ul>
  );
}

function Path({ op, path }: { op: string; path: string }) {
  return <span class="path"><span class={`op op-${/^[a-z]+$/.test(op) ? op : "replace"}`}>{({ add: "+", remove: "−", replace: "~", move: "→", reorder: "⇅" } as Record<string, string>)[op] ?? op}</span>{path || "/"}</span>;
}

function Side({ is, of: v }: { is: "old" | "new"; of: unknown }) {
  const all = useSignal(false), text = value(v), lines = text.split("\n"), cut = !all.value && lines.length > most;
  const seen = cut ? lines.slice(0, most).join("\n") : text;
  return (
    <span class={`side ${is}`}><span class="unseen">{is}: </span><span class="value">{seen === "" ? '""' : seen}</span>
      {cut ? <button type="button" class="more" onClick={(e) => { e.stopPropagation(); all.value = true; }}>{count(lines.length - most)} more lines</button> : null}</span>
  );
}

/** Holes lists what is incomplete, one sentence each. If several resources have the same gap, it is one entry with their number. */
export function Holes({ of: holes }: { of: Incomplete[] }) {
  const groups = grouped(holes);
  if (groups.length === 0) return null;
  return <ul class="holes">{groups.map((g, i) => <Hole key={i} g={g} />)}</ul>;
}

function Hole({ g }: { g: Group }) {
  const { one, streams } = g, end = whole.value?.to ?? one.from, some = streams.length > 1;
  return (
    <li><span class="hatched" aria-hidden="true" />{some ? `${count(streams.length)} resources are not complete (${one.cause || one.kind}).` : one.text || `${one.kind} ${streams[0] ?? ""}`}{" "}
      <span class="faint">{brief(one.from, end)} to {one.to === null ? "now" : brief(one.to, end)}</span>
      {some ? <details><summary>which</summary>{streams.join(", ")}</details> : null}</li>
  );
}

export function Section({ title, note, children }: { title: string; note?: ComponentChildren; children: ComponentChildren }) {
  return <section class="part"><h2>{title}{note !== undefined ? <span class="note">{note}</span> : null}</h2>{children}</section>;
}
