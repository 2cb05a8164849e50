// Package class classifies the deltas of the timeline by what they changed (package change). It does no I/O.
package class

import (
	"slices"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
)

// A Class is the kind of a delta on the timeline.
type Class string

// These are the classes.
const (
	Deleted   Class = "deleted"
	Added     Class = "added"
	Changed   Class = "change"
	Status    Class = "status"
	Event     Class = "event"
	Sync      Class = "sync"
	Heartbeat Class = "heartbeat"
)

// Version is the version of the classification. Raise it whenever a delta gets another class, or counts elsewhere. Package
// activity then makes the counts again.
const Version = 1

// All lists the classes, the most important first. The first class among merged marks stands for all of them.
var All = []Class{Deleted, Added, Changed, Status, Event, Sync, Heartbeat}

// Known reports whether a text is a class.
func Known(text string) bool { return slices.Contains(All, Class(text)) }

// Index returns the place of a class in All.
func Index(c Class) int { return slices.Index(All, c) }

// Of returns the class of a delta. first says that it is the first delta of its life: a Sync that found the object is not a
// change.
//
// The class depends on the row alone, except for resources that a controller manages as a whole (Managed). For these, Of also
// uses Object. It ignores Before. So counting folds nothing. A shown object has the class
// with which it was counted, unless its manager changed on that day (Managed).
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

// OfVersion is Of for a folded version.
func OfVersion(v *history.Version) Class {
	d := change.Delta{Group: v.Stream.Group, Resource: v.Stream.Resource, Type: v.Type, Source: v.Source, Patch: v.Patch, Object: v.Doc}
	return Of(d, v.Seq == v.ObjectID)
}

// Managed reports whether the class of a resource depends on the manager of the object.
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
