// The inspector: one object at one instant. What changed and who wrote it, the YAML, Events, owners and owned, versions.
import { computed, useSignal } from "@preact/signals";
import { count, full, span } from "./clock";
import { morePages, object, related, tab, versions } from "./data";
import { walk } from "./instant";
import { cursor, live } from "./window";
import { focus, move } from "./focus";
import type { Change, Line, ObjectAnswer, Related } from "./model";
import { Blamed, Near, Told } from "./tales";
import { Class, Command, Diff, Holes, Link, Section, When, Writer } from "./parts";
import { Rows } from "./rows";

export const tabs = ["change", "nearby", "yaml", "blame", "story", "versions"] as const;
const titles = { change: "Change", nearby: "Nearby", yaml: "YAML", blame: "Blame", story: "Story", versions: "Versions" };

const nothing = computed(() => focus.value.uid === "" && focus.value.name === "");

export function Inspector() {
  const shows = tab.value, o = object.answer.value;
  if (nothing.value) return <p class="empty">Choose an object: click a lane, or press / and type its name.</p>;
  if (!o) return object.failed.value ? <p class="error">{object.failed.value}</p> : <p class="busy">The object is folded…</p>;
  return (
    <article class={`object${object.busy.value ? " stale" : ""}`}>
      <Head o={o} />
      <div class="tabs" role="tablist" aria-label="Of this object">
        {tabs.map((t) => <button type="button" role="tab" key={t} id={`tab-${t}`} aria-controls="tabpanel" aria-selected={shows === t} onClick={() => move({ tab: t })}>{titles[t]}</button>)}
      </div>
      <div role="tabpanel" id="tabpanel" aria-labelledby={`tab-${shows}`} tabIndex={0}>
        {shows === "yaml" ? <Yaml lines={o.yaml ?? []} /> : shows === "blame" ? <Blamed uid={o.object.uid} at={o.delta?.seq} /> : shows === "story" ? <Told uid={o.object.uid} /> : shows === "versions" ? <Versions o={o} /> : shows === "nearby" ? <Near uid={o.object.uid} /> : <Changed o={o} />}
      </div>
      {shows === "change" || shows === "yaml" ? <Command text={o.command} /> : null}
    </article>
  );
}

function Head({ o }: { o: ObjectAnswer }) {
  const r = o.object, at = cursor.value ?? o.delta?.time ?? null, gone = o.exists === false || o.delta?.type === "Deleted";
  return (
    <header class="object-head">
      <h1><span class="kind">{r.kind}</span> <span class="whole-name">{r.name}</span></h1>
      <p class="faint">{r.namespace ? <>in <b>{r.namespace}</b> · </> : null}<span title="UID: a life of this name">{r.uid}</span>{r.resourceVersion ? ` · resourceVersion ${r.resourceVersion}` : ""}</p>
      {gone ? <p class="gone">{o.delta?.type === "Deleted" ? "Deleted at this instant." : "Not there at this instant."} Step to its {o.previous !== null ? "previous" : "next"} version to see it.</p> : null}
      <p class="steps">
        <button type="button" disabled={o.previous === null} onClick={() => walk("previous", "object")} title="Previous version (←)">← previous</button>
        <span>{o.delta ? <>version of <When seq={o.delta.seq} time={o.delta.time} /></> : null}{o.delta && at && at - o.delta.time > 1500 ? <span class="faint"> {span(at - o.delta.time)} before the instant</span> : null}</span>
        <button type="button" disabled={o.next === null || live.value} onClick={() => walk("next", "object")} title="Next version (→)">next →</button>
      </p>
      <Holes of={o.incomplete ?? []} />
    </header>
  );
}

/** bookkeeping reports whether the API server itself makes this change at each write. Every version has such changes, and they hide the real ones. */
const bookkeeping = (c: Change) => /^\/metadata\/(managedFields|generation|resourceVersion)(\/|$)/.test(c.path);

/** Differences shows the real changes. A button with their number opens the server's bookkeeping. */
function Differences({ diff }: { diff: Change[] }) {
  const open = useSignal(false), own = diff.filter((c) => !bookkeeping(c)), rest = diff.length - own.length;
  return (
    <>
      <Diff changes={open.value ? diff : own} />
      {rest > 0 ? <p><button type="button" class="more" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>{open.value ? "fold the bookkeeping" : `bookkeeping of the API server: ${count(rest)} ${rest === 1 ? "path" : "paths"} folded`}</button></p> : null}
    </>
  );
}

/** unchanged returns why there is no difference. */
function unchanged(o: ObjectAnswer): string {
  if (o.delta?.type === "Added") return "The object was created with this version.";
  if (o.delta?.type === "Deleted") return "The object was deleted.";
  if ((o.incomplete ?? []).some((i) => i.kind === "pruned")) return "What changed is not known: the version before is on a day that is not on record.";
  return "No field changed: the version is a copy that the recorder stored.";
}

function Changed({ o }: { o: ObjectAnswer }) {
  const d = o.delta, diff = o.diff ?? [];
  return (
    <>
      {d ? (
        <Section title="What changed" note={<><Class of={d.class} /> <Writer manager={d.manager} evidence={d.managerEvidence} hint={d.hint} /></>}>
          {diff.length > 0 ? <Differences diff={diff} /> : <p class="faint">{unchanged(o)}</p>}
        </Section>
      ) : null}
      <Belongs o={o} />
    </>
  );
}

/** Belongs shows the objects that belong to the object. They are loaded after the object itself. */
function Belongs({ o }: { o: ObjectAnswer }) {
  const r = related.answer.value, known = o.incomplete ?? [];
  if (related.failed.value && !related.busy.value) return <p class="error">{related.failed.value}</p>;
  if (!r || related.asked.value?.params.uid !== o.object.uid) return <p class="busy">Events, owners and owned are looked up…</p>;
  return (
    <div class={related.busy.value ? "stale" : ""}>
      <Events r={r} />
      <Owns r={r} />
      <Holes of={(r.incomplete ?? []).filter((i) => !known.some((k) => k.text === i.text))} />
    </div>
  );
}

function Events({ r }: { r: Related }) {
  const events = r.events ?? [];
  if (events.length === 0) return null;
  return (
    <Section title="Events" note={(r.eventsTotal ?? 0) > events.length ? `${count(events.length)} of ${count(r.eventsTotal ?? 0)}` : count(events.length)}>
      <table class="events"><tbody>
        {events.map((e, i) => <tr key={i} class={e.type === "Warning" ? "warning" : ""}><td class="time">{full(e.time).slice(11, 19)}</td><td><b>{e.reason}</b>{e.count && e.count !== "1" ? ` ×${e.count}` : ""} {e.message}</td></tr>)}
      </tbody></table>
    </Section>
  );
}

function Owns({ r }: { r: Related }) {
  const owners = r.owners ?? [], owned = r.owned ?? [], more = (r.ownedTotal ?? owned.length) - owned.length;
  if (owners.length + owned.length === 0) return null;
  return (
    <Section title="Owners and owned">
      {owners.length > 0 ? <p class="refs">owned by {owners.map((o) => <Link key={o.uid} to={o} />)}</p> : null}
      {owned.length > 0 ? <p class="refs">owns {owned.map((o) => <Link key={o.uid} to={o} />)}{more > 0 ? <span class="faint"> and {count(more)} more</span> : null}</p> : null}
    </Section>
  );
}

/** Yaml hides folded lines until the user opens them. */
function Yaml({ lines }: { lines: Line[] }) {
  const open = useSignal(false), folded = lines.filter((l) => l.folded).length, seen = open.value ? lines : lines.filter((l) => !l.folded);
  if (lines.length === 0) return <p class="empty">There is no object at this instant.</p>;
  return (
    <>
      {folded > 0 ? <p><button type="button" class="more" aria-expanded={open.value} onClick={() => { open.value = !open.value; }}>{open.value ? "fold managedFields" : `managedFields: ${count(folded)} lines folded`}</button></p> : null}
      <pre class="yaml" tabIndex={0} aria-label="YAML">{seen.map((l, i) => <span key={i} class={`line ${({ added: "added", changed: "changed", removed: "removed" } as Record<string, string>)[l.mark ?? ""] ?? ""}`} title={l.path}>{l.text}{"\n"}</span>)}</pre>
    </>
  );
}

function Versions({ o }: { o: ObjectAnswer }) {
  const of = versions.asked.value?.params, same = of?.resource === o.object.resource && of.namespace === o.object.namespace && of.name === o.object.name;
  const answer = same ? versions.answer.value : null, rows = (answer?.rows ?? []).filter((r) => r.uid === o.object.uid), others = (answer?.rows ?? []).length - rows.length;
  if (!answer) return versions.failed.value ? <p class="error">{versions.failed.value}</p> : <p class="busy">The versions are read…</p>;
  return (
    <>
      <Rows rows={rows} at={o.delta?.seq} plain />
      {answer.next ? <button type="button" class="more" onClick={() => { morePages.value++; }}>{count(rows.length)} are shown; show 100 more</button> : <p class="faint">{count(rows.length)} {rows.length === 1 ? "version is" : "versions are"} on record{others > 0 ? `, and ${count(others)} of other lives of this name` : ""}.</p>}
      <Command text={answer.command} />
    </>
  );
}
