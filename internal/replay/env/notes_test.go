package env_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
)

func TestANoteAboutManyResourcesIsPrintedOnce(t *testing.T) {
	noon := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	note := func(kind history.NoteKind, resource string, from, to time.Time) history.Note {
		return history.Note{Kind: kind, Resource: resource, From: from, To: to, Text: string(kind) + " of " + resource}
	}
	said := func(notes ...history.Note) string {
		var out bytes.Buffer
		env.New(genericiooptions.IOStreams{ErrOut: &out}, nil).Notes(notes)
		return out.String()
	}
	var never, notYet, gaps, open, quiet, estimated []history.Note
	for i, resource := range []string{"pods", "nodes", "secrets", "jobs", "events"} {
		at := noon.Add(time.Duration(i) * time.Second)
		never = append(never, note(history.NoteNotYet, resource, time.Time{}, time.Time{}))
		notYet = append(notYet, note(history.NoteNotYet, resource, time.Time{}, at))
		gaps = append(gaps, note(history.NoteGap, resource, at, at.Add(time.Minute)))
		open = append(open, note(history.NoteGap, resource, at, time.Time{}))
		quiet = append(quiet, note(history.NoteAfterEnd, resource, at, time.Time{}))
		estimated = append(estimated, note(history.NoteEstimated, resource, at, at))
	}
	const who = "5 resources (pods, nodes, secrets, …)"
	require.Equal(t, "Note: "+who+" were not recorded yet; \"coverage\" says why\n", said(never...))
	require.Equal(t, "Note: "+who+" were not recorded before 2026-03-10T12:00:04Z; \"coverage\" says why\n", said(notYet...))
	require.Equal(t, "Note: changes of "+who+" between 2026-03-10T12:00:00Z and 2026-03-10T12:01:04Z may have been missed; \"coverage\" says why\n", said(gaps...))
	require.Equal(t, "Note: changes of "+who+" after 2026-03-10T12:00:00Z are not on record; \"coverage\" says why\n", said(open...))
	require.Equal(t, "Note: the watches of "+who+" have shown nothing after an earlier resource version: this is their last known state\n", said(quiet...))
	require.Equal(t, "Note: estimated of pods, and the same of 4 more resources\n", said(estimated...))

	end := history.Note{Kind: history.NoteAfterEnd, From: noon, Text: "the record ends"}
	require.Equal(t, "Note: gap of pods\nNote: gap of nodes\nNote: gap of secrets\nNote: the record ends\n", said(append(gaps[:3:3], end)...), "three notes are printed one by one")
	require.Equal(t, "Note: gap of pods\nNote: not_yet of pods\n", said(gaps[0], notYet[0]), "two kinds")
}
