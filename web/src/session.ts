// A session of the API of the past whose clock follows the cursor: kubectl and k9s in that session show the instant of the page.
import { batch, computed, effect, signal } from "@preact/signals";
import { admitted, Failure, locked, order } from "./api";
import { announced, carry } from "./instant";
import { meta } from "./window";
import { cluster, focus } from "./focus";
import { head } from "./live";
import type { Session } from "./model";

const place = "kuberewind.session";

/** driven is the name of the session, "" if the cursor sets no clock. It belongs to this tab and is not part of a link, so that opening a link moves no clock. */
export const driven = signal(kept());
export const state = signal<Session | null>(null);
/** refusal is the reason why the clock could not be set or read. */
export const refusal = signal("");
/** ended has a message if the session has ended. Moving the cursor does not create it again. */
export const ended = signal("");
/** following makes the page follow a clock that another tool moves. */
export const following = signal(false);
/** sessions are the sessions of this cluster; null until they are loaded. */
export const sessions = signal<Session[] | null>(null);

function kept(): string {
  try { return sessionStorage.getItem(place) ?? ""; } catch { return ""; }
}

function keep(name: string): void {
  driven.value = name;
  try { sessionStorage.setItem(place, name); } catch { /* Then a reload loses it. */ }
}

const uid = () => meta.answer.peek()?.cluster ?? "";
const path = (name: string) => `/session/v1${name && `/${encodeURIComponent(name)}`}?${new URLSearchParams({ cluster: uid() })}`;
const sentence = (e: unknown) => (e instanceof Failure ? e.message : "The server does not answer.");

/** instant is the cursor's instant in the form of a session, "" while the server resolves its seq. */
const instant = computed(() => (focus.value.wanted ? "" : focus.value.at === null ? "now" : `seq:${focus.value.at}`));

/** aim is the instant to which the clock was last set, or at which it was found; null until the session was read. stands is the clock's seq at that time, null at
 * the end of the record. */
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
let turn = 0; // A state that was requested before a change does not include it.

// The clock follows the cursor. A drag changes the instant only on release.
effect(() => {
  const at = instant.value;
  if (!driven.value || !at || aim.value === null || at === aim.value || ended.value) return;
  aim.value = at;
  void follow();
});

/** follow sets the clock to the cursor. If the cursor moves during a request, only its last instant counts. */
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
      if (made && aim.peek() !== null && driven.peek()) announced.value = `Session ${name} had ended, and was made again.`;
    });
    return true;
  } catch (e) {
    if (mine === turn) batch(() => { announced.value = refusal.value = sentence(e); stands.value = null; });
    return false;
  } finally {
    if (mine === turn) turn++;
  }
}

/** set moves the clock to this instant again, after another tool moved it or the server refused. */
export function set(): void {
  aim.value = instant.peek() || aim.peek();
  void follow();
}

/** make creates a session at this instant, and drives it. It does not move an existing session. */
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

/** drive starts at the instant of a session. The clock does not move before the cursor does. */
export function drive(s: Session): void {
  turn++;
  batch(() => {
    refusal.value = ended.value = "";
    state.value = s;
    go(s);
    keep(s.name);
  });
}

/** go moves the page to the instant of the clock. */
export function go(s: Session): void {
  const end = s.playing && s.atEnd;
  batch(() => {
    [aim.value, stands.value] = end ? ["now", null] : [`seq:${s.seq}`, s.seq];
    carry(end ? null : s.seq, Date.parse(s.time));
  });
}

/** stopDriving stops driving the session. The session continues. */
export function stopDriving(): void {
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
    if (driven.peek() === name) stopDriving();
    refusal.value = "";
  } catch (e) {
    refusal.value = sentence(e);
  }
  await list();
}

/** list loads the sessions of this cluster. */
export async function list(): Promise<void> {
  try {
    const { body } = await order<{ sessions: Session[] }>("GET", path(""));
    sessions.value = body.sessions.filter((s) => s.cluster === uid());
  } catch (e) {
    refusal.value = sentence(e);
  }
}

const every = 1000;

/** watch reads the session while the tab is visible. Reading counts as use, so the session does not end. */
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
    if (body.cluster !== uid()) stopDriving(); else learn(body);
  } catch (e) {
    if (mine === turn && e instanceof Failure && e.code === 404) batch(() => { [ended.value, state.value] = [e.message, null]; });
  }
}

function learn(s: Session): void {
  batch(() => {
    [state.value, ended.value] = [s, ""];
    // After a reload the cursor and the clock should have the same instant. If not, another tool moved the clock.
    if (aim.peek() === null) [aim.value, stands.value] = [instant.peek() || null, focus.peek().at];
    if (following.peek() && elsewhere.value) go(s);
  });
}

// A session belongs to one cluster.
let was = cluster.peek();
effect(() => {
  if (cluster.value === was) return;
  was = cluster.value;
  sessions.value = null;
  stopDriving();
});
