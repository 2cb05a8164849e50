// A session of the API of the past whose clock the cursor sets: kubectl and k9s that are pointed at it show the instant that is looked at.
import { batch, computed, effect, signal } from "@preact/signals";
import { admitted, Failure, locked, order } from "./api";
import { carry, told } from "./instant";
import { meta } from "./window";
import { cluster, focus } from "./focus";
import { head } from "./live";
import type { Session } from "./model";

const place = "kuberewind.session";

/** driven is the name of the session, "" if the cursor sets no clock. It is of this tab, and no part of a link: who opens a link moves nothing. */
export const driven = signal(kept());
export const state = signal<Session | null>(null);
/** refusal is why the clock was not set, or not read. */
export const refusal = signal("");
/** ended says that the session is gone. It is not made again by a move of the cursor. */
export const ended = signal("");
/** following has the page go where another tool moves the clock. */
export const following = signal(false);
/** sessions are those of this cluster; null until they are asked for. */
export const sessions = signal<Session[] | null>(null);

function kept(): string {
  try { return sessionStorage.getItem(place) ?? ""; } catch { return ""; }
}

function keep(name: string): void {
  driven.value = name;
  try { sessionStorage.setItem(place, name); } catch { /* A reload forgets it. */ }
}

const uid = () => meta.answer.peek()?.cluster ?? "";
const path = (name: string) => `/session/v1${name && `/${encodeURIComponent(name)}`}?${new URLSearchParams({ cluster: uid() })}`;
const sentence = (e: unknown) => (e instanceof Failure ? e.message : "The server does not answer.");

/** instant is where the cursor is, as a session takes it; "" while the server is asked which seq it is. */
const instant = computed(() => (focus.value.wanted ? "" : focus.value.at === null ? "now" : `seq:${focus.value.at}`));

/** aim is where the clock was put last, or found; null until the session was read. stands is the seq that it then had, null at the end of the record. */
const aim = signal<string | null>(null), stands = signal<number | null>(null);
const farBehind = 60_000;

/** elsewhere is true if another tool moved the clock. */
export const elsewhere = computed(() => {
  const s = state.value, end = head.value?.time;
  if (!s || aim.value === null || setting.value) return false;
  if (aim.value === "now") return !s.playing || (end !== undefined && end - Date.parse(s.time) > farBehind);
  return s.playing || s.seq !== stands.value;
});

const setting = signal(false);
let turn = 0; // A state that was asked for before a change says nothing about it.

// The clock follows the cursor. A drag is no change of the instant until it is released.
effect(() => {
  const at = instant.value;
  if (!driven.value || !at || aim.value === null || at === aim.value || ended.value) return;
  aim.value = at;
  void follow();
});

/** follow sets the clock to where the cursor is. While a request is open the cursor may move on: what counts is where it is last. */
async function follow(): Promise<void> {
  if (setting.peek()) return;
  setting.value = true;
  for (let at: string | null = null; driven.peek() && aim.peek() && at !== aim.peek();) {
    at = aim.peek();
    await put(driven.peek(), at as string);
  }
  setting.value = false;
}

async function put(name: string, at: string): Promise<boolean> {
  const mine = ++turn;
  try {
    const end = at === "now", { body, made } = await order<Session>("PUT", path(name), { cluster: uid(), at, playing: end, ...(end ? { speed: 1 } : {}) });
    if (mine !== turn) return false;
    batch(() => {
      [state.value, stands.value, refusal.value, ended.value] = [body, end ? null : body.seq, "", ""];
      if (made && aim.peek() !== null && driven.peek()) told.value = `Session ${name} had ended, and was made again.`;
    });
    return true;
  } catch (e) {
    if (mine === turn) batch(() => { told.value = refusal.value = sentence(e); stands.value = null; });
    return false;
  } finally {
    if (mine === turn) turn++;
  }
}

/** set puts the clock to this instant again, after another tool moved it or the server refused. */
export function set(): void {
  aim.value = instant.peek() || aim.peek();
  void follow();
}

/** make makes a session at this instant, and drives it. A session that is there is not moved by that. */
export async function make(name: string): Promise<void> {
  await list();
  if (sessions.peek()?.some((s) => s.name === name)) {
    refusal.value = `There is a session ${name} already: drive it, or choose another name.`;
    return;
  }
  const at = instant.peek() || "now";
  if (!(await put(name, at))) return;
  batch(() => { aim.value = at; keep(name); });
}

/** drive begins at the instant of a session: nothing moves before the cursor does. */
export function drive(s: Session): void {
  turn++;
  batch(() => {
    refusal.value = ended.value = "";
    state.value = s;
    go(s);
    keep(s.name);
  });
}

/** go brings the page to where the clock is. */
export function go(s: Session): void {
  const end = s.playing && s.atEnd;
  batch(() => {
    [aim.value, stands.value] = end ? ["now", null] : [`seq:${s.seq}`, s.seq];
    carry(end ? null : s.seq, Date.parse(s.time));
  });
}

/** leave stops driving. The session stays. */
export function leave(): void {
  turn++;
  batch(() => {
    keep("");
    aim.value = stands.value = state.value = null;
    refusal.value = ended.value = "";
    following.value = false;
  });
}

/** end ends a session. */
export async function end(name: string): Promise<void> {
  try {
    await order("DELETE", path(name));
    if (driven.peek() === name) leave();
    refusal.value = "";
  } catch (e) {
    refusal.value = sentence(e);
  }
  await list();
}

/** list asks for the sessions of this cluster. */
export async function list(): Promise<void> {
  try {
    const { body } = await order<{ sessions: Session[] }>("GET", path(""));
    sessions.value = body.sessions.filter((s) => s.cluster === uid());
  } catch (e) {
    refusal.value = sentence(e);
  }
}

const every = 1000;

/** watch reads the session while the tab is visible. That is a use of it, so it does not end. */
export async function watch(): Promise<void> {
  for (;;) {
    const seen = document.visibilityState === "visible" && admitted.peek() && !locked.peek() && uid() !== "";
    if (seen && driven.peek()) await read();
    if (seen && focus.peek().panel === "session" && !driven.peek()) await list();
    await new Promise((done) => setTimeout(done, every));
  }
}

async function read(): Promise<void> {
  const mine = turn, name = driven.peek();
  try {
    const { body } = await order<Session>("GET", path(name));
    if (mine !== turn) return;
    if (body.cluster !== uid()) leave(); else learn(body);
  } catch (e) {
    if (mine === turn && e instanceof Failure && e.code === 404) batch(() => { [ended.value, state.value] = [e.message, null]; });
  }
}

function learn(s: Session): void {
  batch(() => {
    [state.value, ended.value] = [s, ""];
    // After a reload the cursor is where it was, and so should the clock be. If it is not, another tool moved it.
    if (aim.peek() === null) [aim.value, stands.value] = [instant.peek() || null, focus.peek().at];
    if (following.peek() && elsewhere.value) go(s);
  });
}

// A session is of one cluster.
let was = cluster.peek();
effect(() => {
  if (cluster.value === was) return;
  was = cluster.value;
  sessions.value = null;
  leave();
});
