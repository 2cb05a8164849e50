// Package blame says of each line of an object which version last set it. It does no I/O and prints nothing.
//
// A Fold takes the versions of one life, in the order of the record, and then gives the lines of the last one as YAML.
//
// # Which version set a value
//
//   - The version that added it, or that replaced it with another value.
//   - If a version replaced an object or a list as a whole, what is equal inside keeps its version.
//   - An element of a list that moved keeps its version. The elements behind an added or removed one change their index too.
//   - An object or list that lost its last member reads {} or [] since then: that version set it.
//   - A keyframe without a patch, and a Sync, are compared with the version before.
//
// Two origins are not exact. Earlier means that the record of the object begins with the value: it was set then or before. Latest means
// that the record missed versions before this one: one of them may have set the value.
package blame
