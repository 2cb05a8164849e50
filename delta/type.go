package delta

import (
	"strconv"

	"k8s.io/client-go/tools/cache"
)

// Type is what happened to an object.
type Type = cache.DeltaType

// The types of deltas.
const (
	Added   = cache.Added
	Updated = cache.Updated
	Deleted = cache.Deleted
	Sync    = cache.Sync // the object as a list or the record has it, with no event of its own
)

// The numbers of the types in the record.
const (
	NumberAdded = iota + 1
	NumberUpdated
	NumberDeleted
	NumberSync
)

var types = [...]Type{NumberAdded: Added, NumberUpdated: Updated, NumberDeleted: Deleted, NumberSync: Sync}

// TypeWords returns the types of deltas in the spelling of the command line, in the order of their numbers.
func TypeWords() []string {
	words := make([]string, 0, len(types)-1)
	for _, t := range types[1:] {
		words = append(words, string(t))
	}
	return words
}

// TypeNumber returns the number of a type in the record. It returns false for a word that is no type of a delta.
func TypeNumber(t Type) (int16, bool) { return numberOf(types[:], t) }

// TypeOf returns the type with a number. A number of a later release stands for itself.
func TypeOf(number int16) Type { return wordOf(types[:], number) }

func numberOf[T ~string](words []T, word T) (int16, bool) {
	for number := 1; number < len(words); number++ {
		if words[number] == word {
			return int16(number), true
		}
	}
	return 0, false
}

func wordOf[T ~string](words []T, number int16) T {
	if number > 0 && int(number) < len(words) {
		return words[number]
	}
	return T(strconv.Itoa(int(number)))
}
