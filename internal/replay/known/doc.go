// Package known reads from the record which words it holds: names of objects, namespaces, managers. Completion offers them,
// and notes about empty answers suggest them.
//
// Each function runs one query that an index bounds, and returns at most Most words. The package prints nothing.
package known
