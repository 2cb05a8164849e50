// Package measure is the frame of every measure of the suite. Ways to do one thing are run in turn, so that other work of the
// machine hits them alike. They are compared with each other, never with another run.
//
// An [Experiment] names its ways, the quantities that are measured, and the claims that have to hold. [Run.Do] runs all ways n
// times, in orders in which each way follows each other one equally often.
//
// For a claim, each round runs the first way once more. The distance of the medians of the same thing is the noise floor. A
// smaller difference says nothing.
//
// The outcome is a [Result]. The results of one or several runs make a [Report]. It is kept as JSON, and shown as a table, as
// Markdown and as charts.
//
// A program that is charged with CPU time or memory of its own runs in a process of its own ([Child]). [OnServer] starts a
// server, whose CPU time is that of all its processes.
package measure
