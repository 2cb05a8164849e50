package delta

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAPositionMovesAsTheTableSays(t *testing.T) {
	const event, deleted, bookmark, seen, completed = "event", "deleted", "bookmark", "seen", "completed"
	for name, test := range map[string]struct {
		at       Position
		by, to   string
		want     Position
		unchange bool // it is no news
	}{
		"an event is complete with itself":        {at: At("10"), by: event, to: "12", want: At("12")},
		"more deletes may follow":                 {at: At("10"), by: deleted, to: "12", want: Position{"10", "12"}},
		"another of the same version":             {at: Position{"10", "12"}, by: deleted, to: "12", want: Position{"10", "12"}, unchange: true},
		"a delete completes earlier deletes":      {at: Position{"10", "12"}, by: deleted, to: "13", want: Position{"12", "13"}},
		"an event completes earlier deletes":      {at: Position{"10", "12"}, by: event, to: "13", want: At("13")},
		"an event completes none of its version":  {at: Position{"10", "12"}, by: event, to: "12", want: Position{"10", "12"}, unchange: true},
		"a bookmark completes its version":        {at: Position{"10", "12"}, by: bookmark, to: "12", want: At("12")},
		"a later bookmark":                        {at: Position{"10", "12"}, by: bookmark, to: "13", want: At("13")},
		"a bookmark of an earlier version":        {at: Position{"10", "12"}, by: bookmark, to: "11", want: Position{"10", "12"}, unchange: true},
		"an event of an earlier version":          {at: At("10"), by: event, to: "9", want: At("10"), unchange: true},
		"a delete of an earlier version":          {at: At("10"), by: deleted, to: "9", want: At("10"), unchange: true},
		"a watch that was open for long enough":   {at: Position{"10", "12"}, by: completed, want: At("12")},
		"one that completes nothing":              {at: Position{"", "12"}, by: completed, want: Position{"", "12"}},
		"an event while a list is under way":      {at: At("10"), by: seen, to: "12", want: Position{"10", "12"}},
		"an event before the first list":          {by: event, to: "12", want: Position{"", "12"}},
		"and the next":                            {at: Position{"", "12"}, by: event, to: "13", want: Position{"", "13"}},
		"a delete before the first list":          {by: deleted, to: "12", want: Position{"", "12"}},
		"an event without a version":              {at: At("10"), by: event, want: At("10"), unchange: true},
		"a delete without a version":              {at: At("10"), by: deleted, want: At("10"), unchange: true},
		"a bookmark without a version":            {at: At("10"), by: bookmark, want: At("10"), unchange: true},
		"a version that means any":                {at: At("10"), by: bookmark, to: "0", want: At("10"), unchange: true},
		"versions without order, as they arrive":  {at: At("b"), by: event, to: "a", want: At("a")},
		"a delete without order":                  {at: At("b"), by: deleted, to: "a", want: Position{"b", "a"}},
		"versions are no text but numbers":        {at: At("9"), by: event, to: "10", want: At("10")},
		"a version longer than any machine's":     {at: At("9"), by: event, to: "18446744073709551616", want: At("18446744073709551616")},
		"a bookmark after versions without order": {at: Position{"b", "a"}, by: bookmark, to: "c", want: At("c")},
	} {
		got, moved := test.at, true
		switch test.by {
		case event:
			moved = got.Advance(test.to, false)
		case deleted:
			moved = got.Advance(test.to, true)
		case bookmark:
			moved = got.Bookmark(test.to)
		case seen:
			moved = got.See(test.to)
		case completed:
			got.CompleteNewest()
		}
		require.Equal(t, test.want, got, name)
		require.Equal(t, !test.unchange, moved, name)
	}
}

func TestAPositionReachesUpToTheVersionThatTheTableSays(t *testing.T) {
	for _, test := range []struct {
		at      Position
		version string
		want    bool
	}{
		{At("10"), "9", true}, {At("10"), "10", true}, {At("10"), "11", false},
		{Position{"10", "12"}, "10", true}, {Position{"10", "12"}, "11", true}, {Position{"10", "12"}, "12", false}, {Position{"10", "12"}, "13", false},
		{At("b"), "b", true}, {Position{"a", "b"}, "b", false}, {Position{"a", "b"}, "a", true},
	} {
		require.Equal(t, test.want, test.at.Reaches(test.version), "%+v", test)
	}
}

// served draws a history of one resource. Some deletes share a resource version, as deletes of one lease do.
func served(t *rapid.T) (events []event) {
	version := 10
	for range rapid.IntRange(0, 12).Draw(t, "transactions") {
		version += rapid.IntRange(1, 3).Draw(t, "ahead")
		if deletes := rapid.IntRange(0, 3).Draw(t, "deletes"); deletes > 0 {
			events = append(events, slices.Repeat([]event{{version, true}}, deletes)...)
		} else {
			events = append(events, event{version, false})
		}
	}
	return events
}

type event struct {
	version int
	deleted bool
}

func (e event) String() string { return strconv.Itoa(e.version) }

// I2: wherever a watch ends, a watch from the position serves all missing events. It repeats only deletes of one
// version.
func TestAWatchThatGoesOnFromAPositionMissesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := served(t)
		given := rapid.IntRange(0, len(events)).Draw(t, "given")
		at := At("10")
		for _, e := range events[:given] {
			at.Advance(e.String(), e.deleted)
		}
		again := slices.IndexFunc(events, func(e event) bool { return Precedes(at.Complete, e.String()) })
		if again < 0 {
			again = len(events)
		}
		require.LessOrEqual(t, again, given, "all events that were not served yet come")
		for _, e := range events[again:given] {
			require.Equal(t, event{events[given-1].version, true}, e, "only deletes of the newest version come again")
		}
	})
}

// Positions of one stream have a total order: the later of two positions reaches every version that the earlier one
// reaches.
func TestPositionsOfAStreamHaveATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := At("10")
		all := []Position{at}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			version := strconv.Itoa(rapid.IntRange(1, 30).Draw(t, "version"))
			switch rapid.IntRange(0, 4).Draw(t, "step") {
			case 0:
				at.Advance(version, false)
			case 1:
				at.Advance(version, true)
			case 2:
				at.Bookmark(version)
			case 3:
				at.See(version)
			case 4:
				at.CompleteNewest()
			}
			all = append(all, at)
		}
		for i, later := range all {
			require.False(t, Precedes(later.Newest, later.Complete), "nothing is complete that was not given")
			for _, earlier := range all[:i] {
				require.False(t, Precedes(later.Complete, earlier.Complete))
				require.False(t, Precedes(later.Newest, earlier.Newest))
				for version := 1; version <= 31; version++ {
					rv := strconv.Itoa(version)
					require.True(t, !earlier.Reaches(rv) || later.Reaches(rv), "%v reaches %s, %v does not", earlier, rv, later)
				}
			}
		}
	})
}
