// The page: the strip over the whole record, the lanes of the window, and a panel for the instant.
import { render } from "preact";
import { useSignal } from "@preact/signals";
import { count } from "./clock";
import { admit, admitted, again, locked, setToken } from "./api";
import { Bar, Filters } from "./bar";
import { begun, panel } from "./data";
import { gliding, meta, whole } from "./window";
import { cluster, move, taken, type Focus } from "./focus";
import { Help, helping, Spoken, useKeys } from "./keys";
import { Lanes } from "./lanes";
import { follow } from "./live";
import { drawn } from "./paint";
import { idle } from "./query";
import type { Meta } from "./model";
import { ChangeList, Comparing, Now } from "./now";
import { Inspector } from "./object";
import { watch } from "./session";
import { Sessions } from "./sessions";
import { Strip } from "./strip";

const panels: [Focus["panel"], string][] = [["now", "Overview"], ["object", "Object"], ["changes", "Changes"], ["compare", "Compare"], ["session", "Session"]];

function Page() {
  useKeys();
  const shows = panel.value, small = useSignal<"panel" | "lanes">("panel");
  return (
    <>
      <Bar help={() => { helping.value = true; }} />
      <Strip />
      <Filters />
      <nav class="tabs switch" aria-label="Part of the page"><button type="button" aria-pressed={small.value === "panel"} onClick={() => { small.value = "panel"; }}>Instant</button><button type="button" aria-pressed={small.value === "lanes"} onClick={() => { small.value = "lanes"; }}>Lanes</button></nav>
      <main class={`views small-${small.value}`}>
        <Lanes />
        <section class="panel" aria-label="The instant">
          <nav class="tabs" aria-label="Panels">{panels.map(([p, text]) => <button type="button" key={p} aria-current={shows === p ? "page" : undefined} onClick={() => move({ panel: p })}>{text}</button>)}</nav>
          <div class="panel-body" tabIndex={0} role="region" aria-label={panels.find(([p]) => p === shows)?.[1]}>{shows === "object" ? <Inspector /> : shows === "changes" ? <ChangeList /> : shows === "compare" ? <Comparing /> : shows === "session" ? <Sessions /> : <Now />}</div>
        </section>
      </main>
      <Help />
      <Spoken />
    </>
  );
}

/** Gate requests a token. On loopback the link of replay open contains it; elsewhere the user enters a token. */
function Gate() {
  const token = useSignal(""), uid = useSignal(cluster.peek()), shared = location.protocol !== "http:";
  const enter = () => {
    if (uid.value !== cluster.peek()) move({ cluster: uid.value.trim() });
    setToken(token.value.trim());
  };
  return (
    <main class="gate">
      <h1>kuberewind</h1>
      <p class="error">{locked.value}</p>
      <p><button type="button" onClick={again}>try again</button></p>
      {shared ? null : <p>Run <code>replay open</code> where the server runs: it opens this page with a new link. A link can be used once, within a minute.</p>}
      <form onSubmit={(e) => { e.preventDefault(); if (token.value) enter(); }}>
        {shared ? <p><label>UID of the cluster, if the server has several: <input value={uid.value} onInput={(e) => { uid.value = e.currentTarget.value; }} /></label></p> : null}
        <label>{shared ? "Give the bearer token with which you use the cluster:" : "Or give a token of this server:"} <input type="password" autocomplete="off" value={token.value} onInput={(e) => { token.value = e.currentTarget.value; }} /></label> <button type="submit">go on</button>
      </form>
    </main>
  );
}

/** Choice offers the clusters if there are several and the URL names none. */
function Choice({ of }: { of: Meta }) {
  return (
    <main class="gate">
      <h1>kuberewind</h1>
      <p>This server has the records of {count(of.clusters.length)} clusters. Which one do you want to see?</p>
      <ul class="clusters">{of.clusters.map((c) => <li key={c.uid}><button type="button" onClick={() => move({ cluster: c.uid })}><b>{c.name || c.uid}</b></button> <span class="faint">{c.uid}</span></li>)}</ul>
    </main>
  );
}

/** Failed shows why there is no view. The user can choose another cluster. */
function Failed() {
  return (
    <main class="gate">
      <h1>kuberewind</h1>
      <p class="error">{meta.failed.value}</p>
      {cluster.value ? <p><button type="button" onClick={() => move({ cluster: "" })}>leave this cluster</button></p> : null}
    </main>
  );
}

function App() {
  if (locked.value) return <Gate />;
  if (meta.answer.value && !meta.answer.value.cluster) return <Choice of={meta.answer.value} />;
  return meta.answer.value || !meta.failed.value ? <Page /> : <Failed />;
}

// Tests compare what was drawn with the record.
Object.assign(globalThis, { kuberewind: { drawn, idle: () => idle() && !gliding.peek(), span: () => [whole.peek()?.from, whole.peek()?.to] } });

async function start(): Promise<void> {
  if (taken) await admit(taken);
  admitted.value = true;
  await Promise.resolve(); // Send the first question before the page is drawn.
  const page = document.getElementById("page") as HTMLElement;
  page.textContent = "";
  render(<App />, page);
  await Promise.all([follow(() => begun.peek()), watch()]);
}

void start();
