// Package scene holds one story of a shop, as data: its actors, their actions, the times and the order. hack/scene plays it on
// a real control plane.
//
// # What is the same each time
//
//   - The order of the steps, and of each step its actor, its tool, its objects and its fields. A step that awaits something holds up the next.
//   - Which field manager each step leaves, and which objects live at the end.
//
// # What differs
//
//   - UIDs, resource versions, times, and the names that controllers generate: Pods and ReplicaSets.
//   - How the writes of controllers mix, how many there are, and on which Node a Pod runs.
//
// A test that runs the story compares the first list, and folds the second. The committed recording is one run: there, all is fixed.
// See package record.
package scene
