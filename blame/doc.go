// Package blame finds, for each line of an object, the version that last set it. It does no I/O and prints nothing.
//
// A Fold takes the versions of one life in the order of the record. It then returns the lines of the last version as YAML.
//
// # Which version set a value
//
//   - The version that added the value, or that replaced it with another value.
//   - If a version replaced a whole object or list, equal values inside keep their version.
//   - An element of a list that moved keeps its version. So do the elements behind an added or removed element, although their index
//     changes.
//   - If an object or list lost its last member, it reads {} or []. The version that removed the member set that line.
//   - A keyframe without a patch, and a Sync, are compared with the previous version.
//
// Two origins are not exact. Earlier means that the value is as old as the record of the object: this version or an earlier one set
// it. Latest means that the record missed versions before this one: one of them may have set the value.
package blame
