// The questions that depend on the window and the focus, with their answers, which the views show.
import { computed, effect, signal } from "@preact/signals";
import { renewed, type Params } from "./api";
import { step } from "./clock";
import { cluster, focus, latest, move, type Filter } from "./focus";
import { calm, costs, head, laned, lanesAsked, lanesTook, past } from "./live";
import type { Blame, Changes, Compare, Incomplete, Lanes, Nearby, ObjectAnswer, Related, States, Story, Strip, Ticks, Trouble } from "./model";
import { query, type Query } from "./query";
import { barsIn, calmInstant, filterParams, filters, fixed, hour, instant, lanesWidth, live, mark, settle, shown, stripWidth, troubled, upTo, whole, windowOf, type Span } from "./window";

/** A slow strip comes in slices. Each answer except the last has an incomplete stretch for the part that is not counted yet. */
const slices = { pages: 10_000, add: summed };

/** Each slice reports only the lost days and the damaged versions in its own part. */
const met = (i: Incomplete) => i.kind === "pruned" || i.kind === "damaged";

function summed(a: Strip, b: Strip): Strip {
  const counts = a.counts.map((c, k) => c.map((n, i) => n + (b.counts[k]?.[i] ?? 0))), newer = b.incomplete ?? [], before = (a.incomplete ?? []).filter(met);
  const incomplete = [...newer, ...before.filter((i) => !newer.some((known) => known.from === i.from && known.text === i.text))];
  const first = a.ahead ? { ahead: a.ahead } : {}; // the first answer counts all, later answers only their rest
  const older = Object.fromEntries(a.classes.map((c) => [c, (a.before[c] ?? 0) + (b.before[c] ?? 0)]));
  return { ...b, ...first, counts, incomplete, before: older, hidden: { ...b.hidden, heartbeat: (a.hidden?.heartbeat ?? 0) + (b.hidden?.heartbeat ?? 0) } };
}

export const strip = query<Strip>(() => {
  const w = whole.value, bars = barsIn(stripWidth.value);
  if (!w || stripWidth.value === 0) return null;
  const by = live.value ? step((w.to - w.from) / bars) : 1, to = Math.ceil((w.to + 1) / by) * by;
  return { shape: "strip", params: { ...filterParams(), from: 0, to, bars }, mark: mark(to), wait: 30, ...slices };
});

/** begun is true once the strip and the marks of the lanes are loaded, have failed, or have taken long. The user looks at them first. The counts above the
 * lanes, the states, older lanes, the overview and the tail wait until then. */
export const begun = signal(false);
const long = 3000, there = computed(() => whole.value !== null);
const untilBegun = () => new Promise<void>((done) => { const stop = effect(() => { if (begun.value || !there.value) queueMicrotask(() => { stop(); done(); }); }); });

export const density = query<Strip>(() => {
  const s = shown.value;
  if (!s || lanesWidth.value === 0 || !begun.value) return null;
  return { shape: "strip", params: { ...filterParams(), from: Math.round(s.from), to: Math.round(s.to), bars: barsIn(lanesWidth.value) }, mark: mark(s.to), wait: settle(), ...slices };
});

export const page = 100;
export const pages = signal(1);
const order = computed(() => JSON.stringify([focus.value.group, focus.value.sort]));
effect(() => { void filters.value; void order.value; pages.value = 1; });
/** counted is the window of the lanes and their states. While the page follows the record, it does not move until the lanes are counted. */
const counted = computed<Span | null>(() => (live.value ? windowOf(upTo(laned.value)) : shown.value)), countedTo = () => (live.value ? laned : head);
export const lanes: Query<Lanes> = query<Lanes>(() => {
  const s = counted.value, [group, sort] = JSON.parse(order.value) as string[];
  if (!s) return null;
  if (live.value) lanesAsked();
  const like = JSON.stringify([order.value, filters.value, fixed.value, pages.value, renewed.value]);
  const follows = live.value ? { like, aside: lanes.answer.peek() !== null, ended: lanesTook } : {};
  const params = { ...filterParams(), from: Math.round(s.from), to: Math.round(s.to), group, sort, limit: page };
  return { shape: "lanes", params, mark: mark(s.to, countedTo()), wait: settle(), pages: pages.value, add: (a, b) => ({ ...b, lanes: [...a.lanes, ...b.lanes] }), rest: untilBegun, ...follows };
});

/** visible has the lanes on the screen, as a text, so that scrolling within them sends no question. */
export const visible = signal("");
/** Ticks that are closer than this many pixels become one mark with their count. */
export const apart = 20;
/** year is the longest step in which the server merges ticks. */
const year = 365 * 86_400_000;

/** padded returns the window with half its width added on both sides, in whole steps, so that a short pan sends no question. */
function padded(s: Span, by: number): { from: number; to: number } {
  const half = (s.to - s.from) / 2;
  return { from: Math.max(0, Math.floor((s.from - half) / by) * by), to: Math.min(latest, Math.ceil((s.to + half) / by) * by) };
}

export const ticks = query<Ticks>(() => {
  const s = shown.value, ids = visible.value;
  if (!s || !ids || lanesWidth.value === 0) return null;
  const stepMs = Math.min(year, step(((s.to - s.from) / lanesWidth.value) * apart)), p = padded(s, stepMs);
  return { shape: "ticks", params: { ...filterParams(), lanes: ids, ...p, stepMs }, mark: mark(p.to), wait: settle() || 20 };
});

export const states = query<States>(() => {
  const s = counted.value, ids = visible.value;
  if (!s || !ids || !begun.value) return null;
  const p = padded(s, step((s.to - s.from) / 100));
  return { shape: "states", params: { cluster: cluster.value, lanes: ids, ...p }, mark: mark(p.to, countedTo()), wait: settle() || 60, aside: live.value };
});

const come = <T>(q: Query<T>) => q.answer.value !== null || q.failed.value !== "";
const marked = () => (lanes.answer.value?.lanes.length ?? 0) === 0 || lanesWidth.value === 0 || come(ticks);
effect(() => {
  begun.value = false;
  const timer = there.value ? setTimeout(() => { begun.value = true; }, long) : undefined;
  return () => clearTimeout(timer);
});
effect(() => { if (there.value && (stripWidth.value === 0 || come(strip)) && come(lanes) && marked()) begun.value = true; });

export const panel = computed(() => focus.value.panel), tab = computed(() => focus.value.tab);
const subject = computed(() => JSON.stringify([focus.value.uid, focus.value.resource, focus.value.namespace, focus.value.name]));
function subjectParams(): Params | null {
  const [uid, resource, namespace, name] = JSON.parse(subject.value) as string[];
  if (uid) return { uid, cluster: cluster.value };
  return name ? { resource, namespace, name, cluster: cluster.value } : null;
}

export const object = query<ObjectAnswer>(() => {
  const of = subjectParams();
  return of && head.value && focus.value.wanted === "" ? { shape: "object", params: { ...of, at: instant.value }, mark: "" } : null;
});
// A link contains an object's name; the answer has the UID, which identifies the object.
effect(() => {
  const found = object.answer.value?.object, f = focus.peek();
  if (found?.uid && !f.uid && f.name === found.name) move({ uid: found.uid, resource: found.resource, namespace: found.namespace ?? "" }, "learn");
});

/** related is loaded after the object itself, and shows the objects that belong to it. */
export const related = query<Related>(() => {
  const uid = object.answer.value?.object.uid, at = object.asked.value?.params.at;
  if (!uid || subjectParams()?.uid !== uid || panel.value !== "object" || tab.value !== "change") return null;
  return { shape: "related", params: { uid, cluster: cluster.value, at }, mark: "" };
});

/** blame shows which version set each line of the YAML. */
export const blame = query<Blame>(() => {
  const of = subjectParams();
  return of && head.value && panel.value === "object" && tab.value === "blame" ? { shape: "blame", params: { ...of, at: instant.value }, mark: "" } : null;
});

/** story shows what happened in the window to the object, and to the objects that belong to it. */
export const story = query<Story>(() => {
  const of = subjectParams(), s = shown.value;
  if (!of || !s || panel.value !== "object" || tab.value !== "story") return null;
  return { shape: "story", params: { ...of, from: Math.round(s.from), to: Math.round(s.to) }, mark: mark(s.to), wait: settle() };
});

/** nearby shows what changed around the object in the hour before the instant. It looks at the whole namespace, so it follows the end of the record slowly. */
export const nearby = query<Nearby>(() => {
  const of = subjectParams();
  if (!of || calmInstant.value === 0 || focus.value.wanted !== "" || panel.value !== "object" || tab.value !== "nearby") return null;
  return { shape: "nearby", params: { ...of, at: `seq:${calmInstant.value}` }, mark: "" };
});

const joined = (a: Changes, b: Changes): Changes => ({ ...b, rows: [...(a.rows ?? []), ...(b.rows ?? [])] });
export const morePages = signal(1);
effect(() => { void filters.value; void subject.value; void panel.value; void tab.value; morePages.value = 1; });

/** versions has all changes of the name, in all of its lives, with heartbeats, because each is a version. */
export const versions = query<Changes>(() => {
  const of = subjectParams(), w = whole.value, found = object.answer.value?.object;
  if (!of || !w || panel.value !== "object" || tab.value !== "versions" || !found?.uid) return null;
  const params = { cluster: cluster.value, resource: found.resource, namespace: found.namespace, name: found.name, from: w.from, to: w.to + 1, limit: 100, class: ["change", "added", "deleted", "status", "event", "sync", "heartbeat"] };
  return { shape: "changes", params, mark: mark(w.to + 1), pages: morePages.value, add: joined };
});

export const changes = query<Changes>(() => {
  const s = shown.value;
  if (!s || panel.value !== "changes") return null;
  return { shape: "changes", params: { ...filterParams(), from: Math.round(s.from), to: Math.round(s.to), limit: 100 }, mark: mark(s.to), pages: morePages.value, add: joined, wait: settle() };
});

/** These are parts of the focus, so that their readers do not update while the window moves. */
export const chosenUid = computed(() => focus.value.uid), grouping = computed(() => focus.value.group), sorting = computed(() => focus.value.sort);
export const filtering = computed(() => focus.value.filter), lastWidth = computed(() => focus.value.last), chosenAt = computed(() => focus.value.at);
const hourEnd = computed(() => (focus.value.at === null ? calm.value?.time : focus.value.time));

/** lastHour is the hour that ends at the instant. */
export const lastHour = computed<Span | null>(() => {
  const w = whole.value, at = hourEnd.value;
  return w && at ? { from: Math.max(w.from, at - hour), to: at + 1 } : null;
});
export const recent = query<Changes>(() => {
  const h = lastHour.value;
  if (!h || panel.value !== "now" || !begun.value) return null;
  return { shape: "changes", params: { ...filterParams(), from: h.from, to: h.to, limit: 30, class: recentClasses() }, mark: "", aside: true };
});
export const recentCount = query<Strip>(() => {
  const h = lastHour.value;
  return h && panel.value === "now" && begun.value ? { shape: "strip", params: { ...filterParams(), from: h.from, to: h.to, bars: 60 }, mark: "", aside: true, ...slices } : null;
});
/** recentClasses omits the status changes of controllers, unless the filter selects them. */
const recentClasses = () => { const chosen = (JSON.parse(filters.value) as [Filter])[0].class; return chosen.length > 0 ? chosen : ["change", "added", "deleted"]; };

export const trouble = query<Trouble>(() => {
  const seq = troubled.value;
  if (panel.value !== "now" || seq === 0 || !begun.value) return null;
  return { shape: "trouble", params: { cluster: cluster.value, at: `seq:${seq}` }, mark: "", aside: true, ...(past.value ? {} : { took: costs }) };
});

export const base = computed(() => focus.value.base);
export const compare = query<Compare>(() => {
  if (panel.value !== "compare" || base.value === null || !head.value) return null;
  const { namespace, resource } = filterParams();
  return { shape: "compare", params: { a: `seq:${base.value}`, b: instant.value, namespace, resource, cluster: cluster.value }, mark: "" };
});
export const opened = signal("");
export const compared = query<Compare>(() => {
  if (panel.value !== "compare" || base.value === null || !opened.value) return null;
  return { shape: "compare", params: { a: `seq:${base.value}`, b: instant.value, uid: opened.value, cluster: cluster.value }, mark: "" };
});

