package judge

import (
	"encoding/json"
	"time"
)

// managedFields is an entry as the API has it.
type managedFields struct {
	Manager, Operation, APIVersion, Subresource string
	Time                                        time.Time
	FieldsV1                                    json.RawMessage
}

// entryKey identifies an entry among those of one object.
type entryKey struct{ manager, operation, version, subresource string }

// entry is when its manager wrote last, the zero time if the server does not say, and what it owns.
type entry struct {
	at    time.Time
	paths map[string]bool
}

func entriesOf(fields []managedFields) map[entryKey]entry {
	entries := map[entryKey]entry{}
	for _, f := range fields {
		e := entry{at: f.Time, paths: map[string]bool{}}
		e.collect("", f.FieldsV1)
		entries[entryKey{f.Manager, f.Operation, f.APIVersion, f.Subresource}] = e
	}
	return entries
}

// collect adds the paths of a set of fields: each member is a step, and has the steps below it.
func (e entry) collect(path string, set json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(set, &members) != nil {
		return // no set: nothing is owned
	}
	for step, below := range members {
		at := path + "\x00" + step
		e.paths[at] = true
		e.collect(at, below)
	}
}

// took reports whether an entry of the write's manager is new, later or larger than in the version before.
func (w Write) took(before map[entryKey]entry) bool {
	for key, is := range w.entries {
		if key.manager != w.Manager || key.subresource != w.Subresource {
			continue
		}
		was, known := before[key]
		if !known || is.at.After(was.at) || is.gained(was) {
			return true
		}
	}
	return false
}

func (e entry) gained(was entry) bool {
	for path := range e.paths {
		if !was.paths[path] {
			return true
		}
	}
	return false
}
