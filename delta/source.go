package delta

// Source is how a delta became known.
type Source string

// The sources of deltas.
const (
	SourceWatch    Source = "watch"    // an event of a watch
	SourceList     Source = "list"     // the first list of a stream
	SourceRelist   Source = "relist"   // a later list
	SourceResync   Source = "resync"   // a keyframe of a known object
	SourceSchema   Source = "schema"   // other content at the same resource version
	SourceInferred Source = "inferred" // a deletion that no watch has shown: a list lacked the object
)

// The numbers of the sources in the record.
const (
	NumberWatch = iota + 1
	NumberList
	NumberRelist
	NumberResync
	NumberSchema
	NumberInferred
)

var sources = [...]Source{
	NumberWatch: SourceWatch, NumberList: SourceList, NumberRelist: SourceRelist,
	NumberResync: SourceResync, NumberSchema: SourceSchema, NumberInferred: SourceInferred,
}

// Listed reports whether a list of the stream has shown the delta. Such a delta moves the stream's position only when
// the list is complete.
func (s Source) Listed() bool {
	return s == SourceList || s == SourceRelist || s == SourceInferred
}

// Number returns the number of a source in the record. It returns false for a word that is no source.
func (s Source) Number() (int16, bool) { return numberOf(sources[:], s) }

// SourceOf returns the source with a number. An unknown number, from a later release, stands for itself.
func SourceOf(number int16) Source { return wordOf(sources[:], number) }
