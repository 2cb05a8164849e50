package judge

import (
	"slices"
	"strconv"
)

// A join finds the requests that wrote a version.
type join struct {
	wrote map[Version][]Write
	lives map[string][]uint64 // the versions of an object that answers hold, oldest first
}

func newJoin(writes []Write) join {
	j := join{wrote: map[Version][]Write{}, lives: map[string][]uint64{}}
	for _, w := range writes {
		j.wrote[w.Version] = append(j.wrote[w.Version], w)
	}
	for version, all := range j.wrote {
		if slices.ContainsFunc(all, Write.hasEntries) {
			j.lives[version.UID] = append(j.lives[version.UID], version.RV)
		}
	}
	for _, versions := range j.lives {
		slices.Sort(versions)
	}
	return j
}

// writers are the requests that were answered with a version, and may have written it. If one named another version, it wrote: had it
// changed nothing, it would have been answered with the version that it named.
func (j join) writers(v Version) (writers []Write) {
	all := j.wrote[v]
	for _, w := range all {
		switch {
		case w.named() && w.Sent != strconv.FormatUint(w.RV, 10):
			return []Write{w}
		case !w.named() && !w.foundThere(all):
			writers = append(writers, w)
		}
	}
	return writers
}

// named reports whether the request wanted a certain version to be there.
func (w Write) named() bool { return w.Verb == "update" && w.Sent != "" }

// foundThere reports whether the request was received after another was answered with its version.
func (w Write) foundThere(all []Write) bool {
	return slices.ContainsFunc(all, func(other Write) bool { return other.Answered.Before(w.Received) })
}

// took reports whether a write took a field. The version before is the newest older one in an answer.
func (j join) took(w Write) bool {
	versions := j.lives[w.UID]
	at, _ := slices.BinarySearch(versions, w.RV)
	if at == 0 || !w.hasEntries() {
		return false
	}
	return w.took(j.entries(Version{w.UID, versions[at-1]}))
}

// entries are those of a version that an answer holds.
func (j join) entries(v Version) map[entryKey]entry {
	all := j.wrote[v]
	return all[slices.IndexFunc(all, Write.hasEntries)].entries
}

// hasEntries is false for an answer that is not the object itself: a Scale.
func (w Write) hasEntries() bool { return w.Subresource != "scale" }
