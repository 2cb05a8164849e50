// Package objects makes objects at an API server, as YAML describes them, with their status. Tests of whole systems share [Shop].
//
// # What it guarantees
//
// [Maker.Create] returns when the object is there with its status. A CustomResourceDefinition is established then. A method that
// cannot do so fails the test.
//
// # Goroutines
//
// None.
package objects
