// Package class names what a delta is on the timeline, by what it changed (package change). It does no I/O.
package class

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/change"
)

// A Class is what a delta is on the timeline.
type Class string

// The classes.
const (
	Deleted   Class = "deleted"
	Added     Class = "added"
	Changed   Class = "change"
	Status    Class = "status"
	Event     Class = "event"
	Sync      Class = "sync"
	Heartbeat Class = "heartbeat"
)

// All are the classes, the most telling first: of merged marks, the first of these stands for all.
var All = []Class{Deleted, Added, Changed, Status, Event, Sync, Heartbeat}

// Known reports whether a text is a class.
func Known(text string) bool { return slices.Contains(All, Class(text)) }

// Index is the place of a class in All.
func Index(c Class) int { return slices.Index(All, c) }

// Of gives the class of a delta. first says that it is the first delta of its life: a Sync that found the object tells of no change.
func Of(d change.Delta, first bool) Class {
	switch change.Of(d).Class {
	case change.Event:
		return Event
	case change.Status:
		return Status
	case change.Resync:
		return Sync
	case change.Shown:
		return shown(d.Type, first)
	default:
		return Heartbeat
	}
}

func shown(of cache.DeltaType, first bool) Class {
	switch {
	case of == cache.Added:
		return Added
	case of == cache.Deleted:
		return Deleted
	case of == cache.Sync && first:
		return Sync
	}
	return Changed
}
