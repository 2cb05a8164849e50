// The panel of sessions: create or choose one, see its clock, and copy the command line that makes kubectl or k9s use it.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { brief, count, zone } from "./clock";
import { meta, whole } from "./window";
import { move } from "./focus";
import type { Session } from "./model";
import { Command, Section } from "./parts";
import { drive, driven, elsewhere, end, ended, following, go, list, make, refusal, sessions, set, state, stopDriving } from "./session";

const timeOf = (s: Session) => { const ms = Date.parse(s.time); return `${brief(ms, whole.value?.to ?? ms)} ${zone(ms)}, seq:${s.seq}`; };

function clockOf(s: Session): string {
  if (s.problem) return `stands still, because the record cannot be read: ${s.problem}`;
  if (!s.playing) return "stands";
  return s.atEnd ? "waits for the record to grow" : `plays at ${s.speed}×`;
}

const useOf = (s: Session) => (s.watches === 0 ? "no client watches" : s.watches === 1 ? "1 watch is open" : `${count(s.watches)} watches are open`);

/** lines returns the command lines that make clients use the session. No file leads to a shared server, so users give its address. */
function lines(name: string): string[] {
  const m = meta.answer.value, several = (m?.clusters.length ?? 0) > 1, cluster = m?.clusters.find((c) => c.uid === m.cluster)?.name ?? "";
  if (location.protocol === "https:") return [`replay kubeconfig --own-credentials --server https://HOST:PORT/clusters/${m?.cluster ?? "UID"} --session ${name} -o past.kubeconfig`];
  const replay = `replay exec${several ? ` --cluster ${quoted(cluster)}` : ""} --session ${name} --`;
  return [`${replay} k9s`, `${replay} kubectl get pods -A`];
}

const quoted = (word: string) => (/^[\w.:/=,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

export function Sessions() {
  return driven.value ? <Driven name={driven.value} /> : <Choice />;
}

function Refusal() {
  return refusal.value ? <p class="error" role="alert">{refusal.value}</p> : null;
}

function Driven({ name }: { name: string }) {
  const s = state.value, gone = ended.value;
  return (
    <Section title={`Session ${name}`}>
      {gone ? <p class="error" role="alert">{gone}</p> : <p>The cursor sets its clock. If you move to another instant, clients of the session show the cluster at that instant. A drag sets the clock when you release it.</p>}
      <Refusal />
      {s ? <p class="session-clock">Its clock: <b>{timeOf(s)}</b>. It {clockOf(s)}. <span class="faint">{useOf(s)}</span></p> : null}
      {s?.notes?.map((n) => <p class="faint" key={n}>{n}</p>)}
      {elsewhere.value && s ? <p class="elsewhere">The clock is not where the page is. <button type="button" onClick={() => go(s)}>go to the clock</button> <button type="button" onClick={set}>set it to this instant</button></p> : null}
      {gone ? null : <label class="follow"><input type="checkbox" checked={following.value} onChange={(e) => { following.value = e.currentTarget.checked; }} /> go along if another tool moves the clock</label>}
      {gone ? null : <><h3>In a terminal on the server's machine</h3>{lines(name).map((l) => <Command key={l} text={l} />)}</>}
      <p class="session-buttons">
        {gone ? <button type="button" onClick={() => void make(name)}>make it again, at this instant</button> : null}
        <button type="button" onClick={stopDriving}>let go of it</button>
        {gone ? null : <button type="button" onClick={() => void end(name)}>end it</button>}
      </p>
      {gone ? null : <p class="faint">If you let go, the session stays as it is, and ends 30 minutes after its last request. If you end it, its clients get an error.</p>}
    </Section>
  );
}

function Choice() {
  const name = useSignal("page"), all = sessions.value;
  useEffect(() => { void list(); }, []);
  return (
    <>
      <Section title="Show this instant in kubectl and k9s">
        <p>A session is a clock that the page and other programs share. Make one, and point kubectl or k9s at it. They show the cluster at the instant that you look at here.</p>
        <form class="session-new" onSubmit={(e) => { e.preventDefault(); void make(name.value.trim()); }}>
          <label>name <input value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} autocomplete="off" maxLength={63} /></label> <button type="submit" disabled={name.value.trim() === ""}>make a session at this instant</button>
        </form>
        <Refusal />
      </Section>
      <Section title="Sessions of this cluster" note={all ? count(all.length) : undefined}>
        {all === null ? <p class="busy">The server is asked…</p> : null}
        {all?.length === 0 ? <p class="faint">None.</p> : null}
        <ul class="session-list">{all?.map((s) => (
          <li key={s.name}><b>{s.name}</b> <span>{timeOf(s)}</span> <span class="faint">{clockOf(s)}, {useOf(s)}{s.owner ? `, made by ${s.owner}` : ""}</span>
            <span class="session-buttons"><button type="button" aria-label={`Drive session ${s.name}`} onClick={() => drive(s)}>drive it</button> <button type="button" aria-label={`End session ${s.name}`} onClick={() => void end(s.name)}>end it</button></span></li>))}</ul>
        {(all?.length ?? 0) > 0 ? <p class="faint">The page goes to the clock of the session that you drive. Nothing moves before you move the cursor.</p> : null}
      </Section>
    </>
  );
}

/** Driving shows in the header that the cursor also moves a session. */
export function Driving() {
  if (!driven.value) return null;
  const text = ended.value ? `session ${driven.value} has ended` : elsewhere.value ? `session ${driven.value} is elsewhere` : `session ${driven.value}`;
  return <button type="button" class={`badge driving ${ended.value || elsewhere.value ? "warn" : ""}`} title={ended.value || elsewhere.value ? "Open the session" : "The cursor sets the clock of this session: open it"} onClick={() => move({ panel: "session" })}>{text}</button>;
}
