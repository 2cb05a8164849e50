// Package answers measures how long replay takes to answer: until its first line, and until its end.
//
// It asks each question of a process of its own, as a person does. The clock runs from the start of that process. Its standard output is a
// pipe, so nothing is folded, and there is no pager. The process is this program, and runs what cmd/replay runs ([Children]).
//
// The questions are about objects that are chosen from the record: the Deployment with about 50 Pods, and its objects. So any
// record can be measured.
package answers
