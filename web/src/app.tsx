// The page: the strip over the whole record, the lanes of the window, and a panel for the instant.
import { render } from "preact";
import { useSignal } from "@preact/signals";
import { admit, admitted, again, locked, setToken } from "./api";
import { Bar, Filters } from "./bar";
import { meta } from "./data";
import { focus, move, taken, type Focus } from "./focus";
import { Help, helping, Spoken, useKeys } from "./keys";
import { Lanes } from "./lanes";
import { follow } from "./live";
import { drawn } from "./paint";
import { idle } from "./query";
import { ChangeList, Comparing, Now } from "./now";
import { Inspector } from "./object";
import { Strip } from "./strip";

const panels: [Focus["panel"], string][] = [["now", "Overview"], ["object", "Object"], ["changes", "Changes"], ["compare", "Compare"]];

function Page() {
  useKeys();
  const panel = focus.value.panel, small = useSignal<"panel" | "lanes">("panel");
  return (
    <>
      <Bar help={() => { helping.value = true; }} />
      <Strip />
      <Filters />
      <nav class="tabs switch" aria-label="Part of the page"><button type="button" aria-pressed={small.value === "panel"} onClick={() => { small.value = "panel"; }}>Instant</button><button type="button" aria-pressed={small.value === "lanes"} onClick={() => { small.value = "lanes"; }}>Lanes</button></nav>
      <main class={`views small-${small.value}`}>
        <Lanes />
        <section class="panel" aria-label="The instant">
          <nav class="tabs" aria-label="Panels">{panels.map(([p, text]) => <button type="button" key={p} aria-current={panel === p ? "page" : undefined} onClick={() => move({ panel: p })}>{text}</button>)}</nav>
          <div class="panel-body" tabIndex={0} role="region" aria-label={panels.find(([p]) => p === panel)?.[1]}>{panel === "object" ? <Inspector /> : panel === "changes" ? <ChangeList /> : panel === "compare" ? <Comparing /> : <Now />}</div>
        </section>
      </main>
      <Help />
      <Spoken />
    </>
  );
}

/** Gate asks for a token. On loopback it comes with the link of replay open; elsewhere it is the user's own. */
function Gate() {
  const token = useSignal("");
  return (
    <main class="gate">
      <h1>kuberewind</h1>
      <p class="error">{locked.value}</p>
      <p><button type="button" onClick={again}>try again</button></p>
      {location.protocol === "http:" ? <p>Run <code>replay open</code> where the server runs: it opens this page with a new link. A link can be used once, within a minute.</p> : null}
      <form onSubmit={(e) => { e.preventDefault(); if (token.value) { setToken(token.value.trim()); } }}>
        <label>{location.protocol === "http:" ? "Or give a token of this server:" : "Give the bearer token with which you use the cluster:"} <input type="password" autocomplete="off" value={token.value} onInput={(e) => { token.value = e.currentTarget.value; }} /></label> <button type="submit">go on</button>
      </form>
    </main>
  );
}

function App() {
  if (locked.value) return <Gate />;
  return meta.answer.value || !meta.failed.value ? <Page /> : <main class="gate"><h1>kuberewind</h1><p class="error">{meta.failed.value}</p></main>;
}

// Tests compare what was drawn with the record.
Object.assign(globalThis, { kuberewind: { drawn, idle } });

async function start(): Promise<void> {
  if (taken) await admit(taken);
  admitted.value = true;
  const page = document.getElementById("page") as HTMLElement;
  page.textContent = "";
  render(<App />, page);
  await follow();
}

void start();
