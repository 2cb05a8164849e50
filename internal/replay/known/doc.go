// Package known asks the record which words it holds: names of objects, namespaces, managers. Completion offers them, and an answer that
// is empty is explained with them.
//
// Each question is one query that an index bounds, and gives at most Most words. The package prints nothing.
package known
