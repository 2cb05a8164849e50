package delta

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The numbers in the record never change.
func TestTypesAndSourcesHaveTheNumbersOfTheRecord(t *testing.T) {
	for number, word := range map[int16]Type{1: "Added", 2: "Updated", 3: "Deleted", 4: "Sync"} {
		require.Equal(t, word, TypeOf(number))
		got, ok := TypeNumber(word)
		require.True(t, ok)
		require.Equal(t, number, got)
	}
	for number, word := range map[int16]Source{1: "watch", 2: "list", 3: "relist", 4: "resync", 5: "schema", 6: "inferred"} {
		require.Equal(t, word, SourceOf(number))
		got, ok := word.Number()
		require.True(t, ok)
		require.Equal(t, number, got)
	}
	require.Equal(t, []string{"Added", "Updated", "Deleted", "Sync"}, TypeWords())
}

func TestANumberOfALaterReleaseStandsForItself(t *testing.T) {
	require.Equal(t, []Type{"-1", "0", "5"}, []Type{TypeOf(-1), TypeOf(0), TypeOf(5)})
	require.Equal(t, []Source{"0", "7"}, []Source{SourceOf(0), SourceOf(7)})
}

func TestAWordThatIsNoTypeOrSourceHasNoNumber(t *testing.T) {
	for _, word := range []string{"", "added", "Replaced", "1"} {
		_, ok := TypeNumber(Type(word))
		require.False(t, ok, word)
		_, ok = Source(word).Number()
		require.False(t, ok, word)
	}
}

func TestTheSourcesOfAListAreTheOnesThatItsEndCompletes(t *testing.T) {
	listed := map[Source]bool{SourceList: true, SourceRelist: true, SourceInferred: true}
	for _, s := range sources[1:] {
		require.Equal(t, listed[s], s.Listed(), s)
	}
}

var causes = []Cause{
	CauseFirstList, CauseConfiguration, CauseExpired, CauseForbidden, CauseUnauthorized, CauseNotFound,
	CauseUndecodable, CauseHistoryReversed, CauseUnreachable, CauseOverflow, CauseSpoolCorrupt, CauseRelist,
}

func TestTheCauseOfAListGivenWhatTheRecorderKnows(t *testing.T) {
	for _, of := range causes {
		require.Equal(t, of, of.Given(""), "nothing is known")
		require.Equal(t, CauseFirstList, CauseFirstList.Given(of), "nothing was recorded before")
		require.Equal(t, CauseHistoryReversed, CauseHistoryReversed.Given(of))
		require.Equal(t, of, CauseExpired.Given(of), "a 410 says only that the position was too old")
		if of != CauseFirstList {
			require.Equal(t, CauseHistoryReversed, of.Given(CauseHistoryReversed))
		}
		for _, known := range causes {
			if known != CauseHistoryReversed && of != CauseExpired {
				require.Equal(t, of, of.Given(known), "%s, given %s", of, known)
			}
		}
	}
}

func TestOnlyAReversedHistoryDividesAGap(t *testing.T) {
	for _, of := range causes {
		for _, open := range causes {
			require.Equal(t, of == CauseHistoryReversed && open != CauseHistoryReversed, of.Divides(open), "%s, while %s is open", of, open)
		}
	}
}
