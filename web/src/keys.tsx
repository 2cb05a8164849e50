// Keys for everything, and the sheet that lists them.
import { effect, signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { toggleLocal } from "./clock";
import { announced, now, walk } from "./instant";
import { shown } from "./window";
import { focus, move } from "./focus";
import { all, middle, toggle, widen } from "./bar";
import { active, goTo } from "./lanes";
import { mark } from "./now";
import { setTheme, theme } from "./paint";
import { pan } from "./strip";

export const helping = signal(false);

type Key = { keys: string[]; does: string; run: () => void };

const width = () => { const s = shown.peek(); return s ? s.to - s.from : 0; };
const next = (of: string[], is: string) => of[(of.indexOf(is) + 1) % of.length] ?? "";

export const sheet: Key[] = [
  { keys: ["/"], does: "search by name", run: () => document.getElementById("search")?.focus() },
  { keys: ["@"], does: "go to an instant: 03:12, 10m ago, yesterday 14:05", run: () => document.querySelector<HTMLInputElement>("#go-to")?.select() },
  { keys: ["←"], does: "previous change of the object, or of all", run: () => walk("previous") },
  { keys: ["→"], does: "next change of the object, or of all", run: () => walk("next") },
  { keys: ["Shift+←"], does: "previous change of anything in the filter", run: () => walk("previous", "cluster") },
  { keys: ["Shift+→"], does: "next change of anything in the filter", run: () => walk("next", "cluster") },
  { keys: ["<"], does: "previous change of the object and what belongs to it", run: () => walk("previous", "group") },
  { keys: [">"], does: "next change of the object and what belongs to it", run: () => walk("next", "group") },
  { keys: ["↓", "j"], does: "next lane", run: () => goTo(active.peek() + 1) },
  { keys: ["↑", "k"], does: "previous lane", run: () => goTo(active.peek() - 1) },
  { keys: ["n"], does: "go to the end of the record and follow it", run: now },
  { keys: ["["], does: "move the window back", run: () => pan(-width() / 3) },
  { keys: ["]"], does: "move the window on", run: () => pan(width() / 3) },
  { keys: ["+", "="], does: "narrow the window", run: () => middle(0.6) },
  { keys: ["-"], does: "widen the window", run: () => middle(1.6) },
  { keys: ["0"], does: "show all of the record", run: all },
  { keys: ["1"], does: "show an hour", run: () => widen(3_600_000) },
  { keys: ["6"], does: "show six hours", run: () => widen(21_600_000) },
  { keys: ["o"], does: "overview: trouble and the last hour", run: () => move({ panel: "now" }) },
  { keys: ["i"], does: "the object", run: () => move({ panel: "object" }) },
  { keys: ["w"], does: "changes in the window, as a list", run: () => move({ panel: "changes" }) },
  { keys: ["c"], does: "compare: open it", run: () => move({ panel: "compare" }) },
  { keys: ["a"], does: "compare with this instant", run: mark },
  { keys: ["p"], does: "session: show this instant in kubectl and k9s", run: () => move({ panel: "session" }) },
  { keys: ["d"], does: "what changed in the object", run: () => move({ panel: "object", tab: "change" }) },
  { keys: ["f"], does: "find a cause: what changed around the object in the hour before", run: () => move({ panel: "object", tab: "nearby" }) },
  { keys: ["y"], does: "the object's YAML", run: () => move({ panel: "object", tab: "yaml" }) },
  { keys: ["m"], does: "blame: who set each line", run: () => move({ panel: "object", tab: "blame" }) },
  { keys: ["r"], does: "the story of the object and its rollouts", run: () => move({ panel: "object", tab: "story" }) },
  { keys: ["v"], does: "the object's versions", run: () => move({ panel: "object", tab: "versions" }) },
  { keys: ["h"], does: "show or hide heartbeats", run: () => toggle("heartbeat") },
  { keys: ["g"], does: "group lanes by owner, by node, or not", run: () => move({ group: next(["owner", "node", "none"], focus.peek().group) }) },
  { keys: ["s"], does: "sort lanes by changes, trouble or name", run: () => move({ sort: next(["changes", "trouble", "name"], focus.peek().sort) }) },
  { keys: ["x"], does: "copy the command that gives the same", run: () => void copy(document.querySelector<HTMLElement>("[data-copy]")?.dataset.copy ?? "", "The command is copied.") },
  { keys: ["l"], does: "copy a link to what is seen", run: () => void copy(link(), "The link is copied. The other needs a token of this server: replay open makes one.") },
  { keys: ["u"], does: "labels in UTC or in local time", run: toggleLocal },
  { keys: ["t"], does: "dark, light, or as the system", run: () => setTheme(next(["auto", "dark", "light"], theme.peek()) as typeof theme.value) },
  { keys: ["b"], does: "back: undo the last move", run: () => history.back() },
  { keys: ["?"], does: "this sheet", run: () => { helping.value = !helping.peek(); } },
  { keys: ["Escape"], does: "close the sheet, leave a field, or leave the object", run: escapeKey },
];

/** link is exact: at the end of the record it contains the floating window. */
export const link = () => location.origin + location.pathname + location.hash;

async function copy(text: string, said: string): Promise<void> {
  if (!text) return;
  try { await navigator.clipboard.writeText(text); announced.value = said; } catch { announced.value = text; }
}

function escapeKey(): void {
  const in_ = document.activeElement as HTMLElement | null;
  if (helping.peek()) helping.value = false;
  else if (in_ && in_.matches("input, select, textarea")) in_.blur();
  else if (focus.peek().uid || focus.peek().name) move({ uid: "", name: "", resource: "", namespace: "", panel: "now" });
}

const arrows: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };

function press(e: KeyboardEvent): void {
  if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
  const typing = (e.target as HTMLElement).matches("input, select, textarea"), key = arrows[e.key] ?? e.key;
  if (typing && key !== "Escape" || (e.target as HTMLElement).closest("[role=tablist]") && (key === "←" || key === "→")) return;
  const wanted = e.shiftKey && (key === "←" || key === "→") ? `Shift+${key}` : key, found = sheet.find((k) => k.keys.includes(wanted));
  if (!found || (helping.peek() && !["?", "Escape"].includes(key))) return;
  e.preventDefault();
  found.run();
}

export function useKeys(): void {
  useEffect(() => {
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

export function Help() {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => effect(() => { if (helping.value) ref.current?.showModal(); else ref.current?.close(); }), []);
  return (
    <dialog ref={ref} class="help" aria-labelledby="help-title" onClose={() => { helping.value = false; }} onClick={(e) => { if (e.target === ref.current) helping.value = false; }}>
      <div class="help-head"><h1 id="help-title">Keys</h1><button type="button" onClick={() => { helping.value = false; }}>close</button></div>
      <dl>{sheet.map((k) => <div key={k.does}><dt>{k.keys.map((x) => <kbd key={x}>{x === "Escape" ? "Esc" : x}</kbd>)}</dt><dd>{k.does}</dd></div>)}</dl>
      <h2>What is drawn</h2>
      <dl class="legend">
        <div><dt><Shape d="M2 13 8 2l6 11z" of="added" /></dt><dd>added</dd></div><div><dt><Shape d="M5 1h6v14H5z" of="change" /></dt><dd>changed</dd></div>
        <div><dt><Shape d="m2 4 2-2 4 4 4-4 2 2-4 4 4 4-2 2-4-4-4 4-2-2 4-4z" of="deleted" /></dt><dd>deleted</dd></div><div><dt><Shape d="M6.500 3h3v10h-3z" of="status" /></dt><dd>only its status, or a heartbeat</dd></div>
        <div><dt><Shape d="m8 1 6 7-6 7-6-7z" of="event" /></dt><dd>an Event</dd></div><div><dt><span class="hatched" /></dt><dd>not known: a gap, a pause, pruned, or not counted yet</dd></div>
      </dl>
      <p>A number is that many marks in one. Bars grow by the square root of what they count. Hover reads; press and drag scrubs; on the strip Shift and drag selects a window.</p>
    </dialog>
  );
}

function Shape({ d, of: name }: { d: string; of: string }) {
  return <svg width="16" height="16" viewBox="0 0 16 16" class={`shape c-${name}`} aria-hidden="true"><path d={d} fill="currentColor" /></svg>;
}

/** Spoken announces changes to screen readers, such as the cursor's new instant. */
export function Spoken() {
  return <p class={`told${announced.value ? " shown" : ""}`} role="status" aria-live="polite">{announced.value}</p>;
}

let fading = 0;
effect(() => {
  if (!announced.value) return;
  clearTimeout(fading);
  fading = setTimeout(() => { announced.value = ""; }, 4000) as unknown as number;
});
