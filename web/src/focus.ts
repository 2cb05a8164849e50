// The one focus of the page: instant, object, window and filter. Every element sets it, Back undoes it, the URL holds it.
import { computed, signal } from "@preact/signals";

export type Filter = {
  namespace: string[]; resource: string[]; class: string[]; name: string; label: string; manager: string; path: string; type: string;
};
export type Focus = {
  last: number | null; // width in ms of a window that floats with the end of the record; null if from and to apply
  from: number; to: number;
  at: number | null; // seq; null is the end of the record
  time: number | null; // when at was observed, once it is known
  wanted: string; // an instant of the URL that is no seq, until the server resolves it
  uid: string; resource: string; namespace: string; name: string;
  base: number | null; // seq of the other instant of a comparison
  panel: "now" | "object" | "changes" | "compare" | "session"; tab: string;
  filter: Filter; group: string; sort: string; cluster: string;
};

export const classes = ["change", "added", "deleted", "status", "event", "sync", "heartbeat"];
/** shown without a choice: all but heartbeats, which the page counts. */
export const usual = classes.filter((c) => c !== "heartbeat");

const none: Filter = { namespace: [], resource: [], class: [], name: "", label: "", manager: "", path: "", type: "" };
const start: Focus = {
  last: 3_600_000, from: 0, to: 0, at: null, time: null, wanted: "", uid: "", resource: "", namespace: "", name: "", base: null,
  panel: "now", tab: "change", filter: none, group: "owner", sort: "changes", cluster: "",
};

const widths: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["m", 60_000], ["s", 1000]];

function short(ms: number): string {
  for (const [unit, size] of widths) if (ms % size === 0) return `${ms / size}${unit}`;
  return `${Math.round(ms / 1000)}s`;
}

function long(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)([dhms])$/.exec(text);
  const size = found && widths.find(([unit]) => unit === found[2]);
  return found && size && Number(found[1]) > 0 ? Number(found[1]) * size[1] : null;
}

const seqOf = (text: string | null) => (text && /^seq:\d+$/.test(text) ? Number(text.slice(4)) : null);
const chosen = <T extends string>(text: string | null, of: readonly T[], usually: T): T => (of.includes(text as T) ? (text as T) : usually);

/** latest is the last millisecond that the server takes. */
export const latest = Date.UTC(2261, 0, 1);

/** parse reads a URL's fragment. It ignores unknown parameters. */
export function parse(fragment: string): Focus {
  const q = new URLSearchParams(fragment.replace(/^#/, ""));
  const text = (name: string) => q.get(name) ?? "";
  const at = seqOf(q.get("at")), from = Number(q.get("from")), to = Number(q.get("to"));
  const fixed = q.has("from") && q.has("to") && from >= 0 && from < to && to <= latest;
  const wanted = at === null && text("at") !== "now" ? text("at") : "";
  const uid = text("uid"), name = text("name"), named = uid !== "" || name !== "";
  return {
    ...start, last: fixed ? null : (long(text("last")) ?? start.last), from: fixed ? from : 0, to: fixed ? to : 0, at, wanted,
    uid, resource: text("resource"), namespace: text("namespace"), name, base: seqOf(q.get("base")),
    panel: chosen(q.get("panel"), ["now", "object", "changes", "compare", "session"], named ? "object" : "now"), tab: text("tab") || "change",
    group: chosen(q.get("group"), ["owner", "node", "none"], "owner"), sort: chosen(q.get("sort"), ["changes", "trouble", "name"], "changes"),
    cluster: text("cluster"), filter: filterOf(q),
  };
}

/** names are the filter's parameters in the URL. An object uses resource, namespace and name. */
const names = { namespace: "in", resource: "of", class: "class", name: "find", label: "label", manager: "manager", path: "path", type: "type" } as const;

function filterOf(q: URLSearchParams): Filter {
  const text = (name: keyof Filter) => q.get(names[name]) ?? "";
  return {
    namespace: q.getAll(names.namespace), resource: q.getAll(names.resource), class: q.getAll("class").filter((c) => classes.includes(c)),
    name: text("name"), label: text("label"), manager: text("manager"), path: text("path"), type: text("type"),
  };
}

/** show returns a focus as the fragment of a URL. */
export function show(f: Focus): string {
  const q = new URLSearchParams();
  const put = (name: string, value: string, usually = "") => { if (value !== usually) q.append(name, value); };
  if (f.at !== null) q.append("at", `seq:${f.at}`); else put("at", f.wanted);
  if (f.last === null) { q.append("from", String(Math.round(f.from))); q.append("to", String(Math.round(f.to))); } else q.append("last", short(f.last));
  put("uid", f.uid);
  if (f.name) { put("resource", f.resource); put("namespace", f.namespace); put("name", f.name); }
  if (f.base !== null) q.append("base", `seq:${f.base}`);
  put("panel", f.panel, f.name || f.uid ? "object" : "now"); put("tab", f.tab, "change"); put("group", f.group, "owner"); put("sort", f.sort, "changes"); put("cluster", f.cluster);
  for (const name of ["namespace", "resource", "class"] as const) for (const one of f.filter[name]) q.append(names[name], one);
  for (const name of ["name", "label", "manager", "path", "type"] as const) put(names[name], f.filter[name]);
  return "#" + q.toString().replaceAll("%3A", ":").replaceAll("%2F", "/");
}

/** taken is the code of the link that opened the page. It is removed from the URL at once. */
export const taken = (() => {
  const q = new URLSearchParams(location.hash.replace(/^#/, "")), code = q.get("code") ?? "";
  if (code) {
    q.delete("code");
    history.replaceState(null, "", q.size > 0 ? "#" + q : location.pathname);
  }
  return code;
})();

export const focus = signal<Focus>(parse(location.hash));
export const cluster = computed(() => focus.value.cluster);

let glided = -Infinity, pendingWrite = 0; // performance.now() starts at 0 with the page, so 0 would look recent.

/** write sets the URL to the focus. While a window glides, the URL follows a little later, because browsers limit the number of URL changes in a second. */
function write(): void {
  clearTimeout(pendingWrite);
  pendingWrite = 0;
  const f = focus.peek();
  history.replaceState({ time: f.time }, "", show(f));
}
const late = 100;

/** move sets the focus. A glide (pan, zoom, typing) is one step of Back, even with many moves. */
export function move(change: Partial<Focus>, how: "step" | "glide" | "learn" = "step"): void {
  const next = { ...focus.peek(), ...change };
  if (show(next) === show(focus.peek())) { focus.value = next; return; }
  const now = performance.now(), replace = how === "learn" || (how === "glide" && now - glided < 1000);
  glided = how === "glide" ? now : -Infinity;
  if (!replace && pendingWrite) write();
  focus.value = next;
  if (!replace) history.pushState({ time: next.time }, "", show(next));
  else if (how === "learn") write();
  else pendingWrite ||= setTimeout(write, late) as unknown as number;
}

export const filter = (change: Partial<Filter>, how: "step" | "glide" = "step") => move({ filter: { ...focus.peek().filter, ...change } }, how);

export const clearFilter = () => move({ filter: none });

/** enter goes to the end of another cluster's record. Instants, objects and filters belong to one cluster. */
export const enter = (to: string) => move({
  cluster: to, at: null, time: null, wanted: "", base: null, uid: "", resource: "", namespace: "", name: "", filter: none, panel: "now",
});

export const filtered = (f: Filter) => JSON.stringify(f) !== JSON.stringify(none);

addEventListener("popstate", (e) => { clearTimeout(pendingWrite); pendingWrite = 0; focus.value = { ...parse(location.hash), time: (e.state as { time?: number } | null)?.time ?? null }; });
