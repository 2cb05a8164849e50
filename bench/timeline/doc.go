// Package timeline measures the timeline page: what its server takes to answer, and what a person waits for in a real browser.
//
// # What it guarantees
//
//   - The server is a process of its own, and serves as replay serve does ([Children]). It is asked over HTTP on loopback, with a token of a link.
//   - A strip counts as answered when all of it is counted, however many answers that takes.
//   - The browser is Chromium without GPU. Node drives it by figures.mjs, with the driver that the tests of the page use (test/web).
//   - The browser is at rest before the page is opened. The first view is from cold: the server has just begun, and so has the browser's process for the page.
//   - Each figure has a limit in its own unit, and an aim. Each stands in an experiment of its own, so that its noise is its own.
//   - A mark that is left out without a number ends no run: it is a figure, whose limit is none. A mark that is drawn twice ends the run.
//
// The questions are about objects that are chosen from the record (subject), so any record can be measured. A record that was
// there before is only read.
package timeline
