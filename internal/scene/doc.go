// Package scene holds one story of a shop, as data: its actors, their actions, the times and the order. hack/scene
// plays it on a real control plane.
//
// # What is the same each time
//
//   - The order of the steps, and for each step its actor, its tool, its objects and its fields. If a step awaits
//     something, the next step waits.
//   - The field manager of each step, and the objects that live at the end.
//
// # What differs
//
//   - UIDs, resource versions, times, and the names that controllers generate: Pods and ReplicaSets.
//   - The order and the number of the controllers' writes, and the Node of each Pod.
//
// A test that runs the story compares the first list, and folds the second. The committed recording is one run, in
// which everything is fixed. See package record.
package scene
