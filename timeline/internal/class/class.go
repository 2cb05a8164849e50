// Package class names what a delta is on the timeline, by what it changed (package change). It does no I/O.
package class

import (
	"slices"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
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

// Version is that of the rules by which deltas are classified. Raise it whenever a delta gets another class, or counts elsewhere: the counts that were made
// ahead (package activity) are then made again.
const Version = 1

// All are the classes, the most telling first: of merged marks, the first of these stands for all.
var All = []Class{Deleted, Added, Changed, Status, Event, Sync, Heartbeat}

// Known reports whether a text is a class.
func Known(text string) bool { return slices.Contains(All, Class(text)) }

// Index is the place of a class in All.
func Index(c Class) int { return slices.Index(All, c) }

// Of gives the class of a delta. first says that it is the first delta of its life: a Sync that found the object is no change.
//
// The row alone tells the class. So counting folds nothing, and a shown object has the class with which it was counted. So
// Before is not looked at, and Object only of what a controller manages as a whole.
func Of(d change.Delta, first bool) Class {
	d.Before = nil
	if !Managed(d.Group, d.Resource) {
		d.Object = nil
	}
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

// OfVersion is Of for a version that was folded.
func OfVersion(v *history.Version) Class {
	d := change.Delta{Group: v.Stream.Group, Resource: v.Stream.Resource, Type: v.Type, Source: v.Source, Patch: v.Patch, Object: v.Doc}
	return Of(d, v.Seq == v.ObjectID)
}

// Managed reports whether the class of a resource depends on who manages the object.
func Managed(group, resource string) bool {
	return group == "discovery.k8s.io" && resource == "endpointslices" || group == "" && resource == "endpoints"
}

func shown(of delta.Type, first bool) Class {
	switch {
	case of == delta.Added:
		return Added
	case of == delta.Deleted:
		return Deleted
	case of == delta.Sync && first:
		return Sync
	}
	return Changed
}
