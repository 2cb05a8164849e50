// Package measure is the frame that every measure of the suite stands in: ways to do one thing are run in turn, so that what else the
// machine does hits them alike, and compared with each other, never with another run.
//
// An [Experiment] names its ways, what is measured of them, and what has to hold. [Run.Do] runs all ways n times, in orders in which each follows
// each other as often as another does; where something has to hold, the first way once more in each round: how far two medians of the very same
// thing are apart is the noise floor, and a difference that is smaller says nothing. What comes out is a [Result]; those of a run, or of several, are a [Report], which is kept
// as JSON and shown as a table, as Markdown, and as charts.
//
// Whatever is charged with CPU time or memory of its own runs in a process of its own ([Child]); a server is started by [OnServer] and its
// CPU is that of all its processes.
package measure
