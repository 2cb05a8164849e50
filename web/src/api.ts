// Requests to the server of the page: the token, the cached answers, and what happens if the record changes.
import { signal } from "@preact/signals";
import type { Answer } from "./model";

export type Params = Record<string, string | number | string[] | undefined | null>;

/** Failure is an error answer. Its message comes from the server, and says what to do. */
export class Failure extends Error {
  constructor(readonly code: number, message: string) { super(message); }
}

const place = "kuberewind.token";
/** Tokens are stored only with plain http, which is on loopback, so that new tabs find them. A token of a live cluster stays in memory. */
const loopback = location.protocol === "http:";

/** locked has the server's reason for refusing the token; it is empty while requests succeed. */
export const locked = signal("");
/** away has a message while the server cannot be reached. The page retries. */
export const away = signal("");
/** renewed repeats all questions: after a prune, an erasure or a closed gap, with a new token, and when the server answers again. */
export const renewed = signal(0);
let revision: number | null = null;

let token = loopback ? read() : "";

function read(): string {
  try { return localStorage.getItem(place) ?? ""; } catch { return ""; }
}

export function setToken(value: string): void {
  token = value;
  if (loopback) try { localStorage.setItem(place, value); } catch { /* Then only this tab has it. */ }
  again();
}

/** again repeats all questions. Another tab may have stored a newer token. */
export function again(): void {
  if (loopback) token = read() || token;
  locked.value = "";
  renewed.value++;
}

/** admitted is false until the code of the link is exchanged. The page sends no question before. */
export const admitted = signal(false);

/** admit exchanges the single-use code of a link. */
export async function admit(code: string): Promise<void> {
  try {
    const answer = await fetch("/code/v1/exchange", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }), cache: "no-store",
    });
    if (answer.ok) setToken(((await answer.json()) as { token: string }).token);
    else locked.value = (await failure(answer)).message;
  } catch {
    locked.value = "The server does not answer.";
  }
}

/** failure returns the server's reason for an error. If the question was aborted meanwhile, it throws instead. */
async function failure(answer: Response, aborted?: AbortSignal): Promise<Failure> {
  let message = "";
  try { message = ((await answer.json()) as { message?: string }).message ?? ""; } catch { /* A proxy answered. */ }
  aborted?.throwIfAborted();
  if (answer.status === 414 || answer.status === 431) message = "the server takes no question that is so long: make the filter shorter";
  return new Failure(answer.status, message || `the server answered ${answer.status} ${answer.statusText}`);
}

const kept = new Map<string, unknown>();
const most = 300;

/** forget drops all answers if they belong to another revision of the record. */
function forget(now: number): void {
  if (now === undefined || now === revision) return;
  kept.clear();
  if (revision !== null) renewed.value++;
  revision = now;
}

/** setBack drops all answers after the record was restored from an older copy. Later seqs do not exist any more, or belong to other deltas. */
export function setBack(): void {
  kept.clear();
  renewed.value++;
}

export function address(shape: string, params: Params): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params))
    for (const one of Array.isArray(value) ? value : [value]) if (one !== undefined && one !== null && one !== "") query.append(name, String(one));
  return `/timeline/v1/${shape}?${query}`;
}

/** get requests one shape. An answer with a mark is cached under it; the mark is the state of the record for which the answer holds. took receives the
 * duration of the server's answer in milliseconds. */
export async function get<T extends Answer>(shape: string, params: Params, aborted?: AbortSignal, mark?: string, took?: (ms: number) => void): Promise<T> {
  const url = address(shape, params), key = `${url} ${mark}`;
  const known = mark !== undefined && kept.get(key);
  if (known) return known as T;
  const began = performance.now(), answer = await send(url, aborted);
  const body = await reached(answer.json() as Promise<T>, aborted);
  took?.(performance.now() - began);
  forget(body.revision);
  if (mark !== undefined) keep(key, body);
  return body;
}

function keep(key: string, body: unknown): void {
  if (kept.size >= most) kept.delete(kept.keys().next().value as string);
  kept.set(key, body);
}

/** orderPatience bounds a request about sessions, so that the next one is sent. */
const orderPatience = 10_000;

/** order sends a request about sessions, the only thing that the page writes. made reports whether the request created one. */
export async function order<T>(method: "GET" | "PUT" | "DELETE", url: string, body?: unknown): Promise<{ body: T; made: boolean }> {
  const aborted = AbortSignal.timeout(orderPatience), answer = await send(url, aborted, { method, ...(body ? { body: JSON.stringify(body) } : {}) });
  return { body: await reached(answer.json() as Promise<T>, aborted), made: answer.status === 201 };
}

async function send(url: string, aborted?: AbortSignal, what: RequestInit = {}): Promise<Response> {
  const headers: HeadersInit = { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...(what.body ? { "Content-Type": "application/json" } : {}) };
  const answer = await reached(fetch(url, { ...what, headers, signal: aborted, cache: "no-store" }), aborted);
  if (answer.status === 503) return absent(await failure(answer, aborted));
  if (away.peek()) {
    away.value = "";
    renewed.value++;
  }
  if (answer.ok) return answer;
  const failed = await failure(answer, aborted);
  // A refused session of another user does not hide the readable data.
  if (answer.status === 401 || (answer.status === 403 && !url.startsWith("/session/"))) {
    kept.clear(); // Data that the user may no longer read must leave the screen.
    locked.value = failed.message;
  }
  throw failed;
}

/** absent reports that a part of the server is unavailable, such as its database. The page repeats the question, as if the server did not answer. */
function absent(why: Failure): never {
  away.value = why.message;
  throw new Error(why.message);
}

/** reached waits for the network, and sets away if the network fails. */
async function reached<T>(what: Promise<T>, aborted?: AbortSignal): Promise<T> {
  try {
    return await what;
  } catch (e) {
    if (!aborted?.aborted) away.value = "The server does not answer. Start replay serve again; the page goes on by itself.";
    throw e;
  }
}
