package words

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// Created is the Summary of an object that was only created.
const Created = "created"

// Summary returns the facts about a version that its changes do not show. Times are in a zone.
func Summary(v *history.Version, what change.Change, zone *time.Location) string {
	switch {
	case what.Node != "":
		return "bound to " + render.Line(what.Node)
	case what.Evicted && what.DeleteRequested: // a list showed both
		return "evicted, + deletionTimestamp " + ending(v, v.Doc, zone) + grace(v.Doc)
	case what.Evicted:
		return "evicted"
	case what.DeleteRequested:
		return "+ deletionTimestamp " + ending(v, v.Doc, zone) + grace(v.Doc)
	case len(what.Waiting) > 0:
		return "waiting: " + render.Line(strings.Join(what.Waiting, ", "))
	case v.Type == delta.Updated && deletionMoved(v):
		return "deletionTimestamp " + ending(v, v.Before, zone) + " → " + ending(v, v.Doc, zone) + grace(v.Doc)
	}
	about := origin(v)
	if granted := grant(v); granted != "" && about != "" {
		about += ": " + granted
	}
	return about
}

// origin returns a text about the source of a version.
func origin(v *history.Version) string {
	first := v.Seq == v.ObjectID
	switch {
	case v.Type == delta.Added && v.Source == delta.SourceWatch:
		return Created
	case v.Type == delta.Added:
		return "found by a list after a gap: created during the gap"
	case v.Type == delta.Deleted && v.Source == delta.SourceInferred:
		return "deleted: a list no longer held it"
	case v.Type == delta.Deleted:
		return "deleted"
	case v.Type != delta.Sync:
		return ""
	case v.Source == delta.SourceList && first:
		return "existed when recording began"
	case v.Source == delta.SourceResync:
		return "unchanged: stored again"
	case v.Source == delta.SourceSchema:
		return "no client changed it: the server serves it in another form"
	case first:
		return "found by a list after a gap"
	}
	return "found changed by a list after a gap"
}

// The fields that a delete request sets.
const (
	timestamp   = "/metadata/deletionTimestamp"
	gracePeriod = "/metadata/deletionGracePeriodSeconds"
)

func texts(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	return oneLine(value)
}

// ending returns the deletion time of an object: only the time of day, if it is on the day of the version.
func ending(v *history.Version, doc patch.Doc, zone *time.Location) string {
	text := texts(doc, timestamp)
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	if at = at.In(zone); at.Format(time.DateOnly) == v.OccurredAt.In(zone).Format(time.DateOnly) {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.RFC3339)
}

func grace(doc patch.Doc) string {
	if seconds := texts(doc, gracePeriod); seconds != "" {
		return " (grace " + seconds + " s)"
	}
	return ""
}

// deletionMoved reports whether the time of an earlier delete request changed. A kubelet changes it when it is done.
func deletionMoved(v *history.Version) bool {
	before, now := texts(v.Before, timestamp), texts(v.Doc, timestamp)
	return before != "" && now != "" && before != now
}

// Terminates reports whether a version sets or moves the deletion time of an object.
func Terminates(v *history.Version) bool {
	return v.Type == delta.Updated && texts(v.Before, timestamp) != texts(v.Doc, timestamp)
}

// NotInSummary returns the changes of a version that its Summary does not contain.
func NotInSummary(v *history.Version, all []field.Change) []field.Change {
	if texts(v.Doc, timestamp) == texts(v.Before, timestamp) {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(c field.Change) bool {
		at := c.Path.Pointer()
		return at == timestamp || at == gracePeriod
	})
}

// grant returns the role and the subjects of a RoleBinding or ClusterRoleBinding that was created or deleted.
func grant(v *history.Version) string {
	if v.Stream.Group != "rbac.authorization.k8s.io" || !strings.HasSuffix(v.Stream.Resource, "bindings") || v.Type == delta.Updated {
		return ""
	}
	var binding struct {
		RoleRef  struct{ Kind, Name string }
		Subjects []struct{ Kind, Name, Namespace string }
	}
	if json.Unmarshal(v.Doc, &binding) != nil {
		return ""
	}
	var subjects []string
	for _, s := range binding.Subjects {
		name := s.Name
		if s.Namespace != "" {
			name = s.Namespace + "/" + name
		}
		subjects = append(subjects, s.Kind+" "+name)
	}
	if len(subjects) == 0 {
		subjects = []string{"no subjects"}
	}
	return render.Line(binding.RoleRef.Kind + " " + binding.RoleRef.Name + " for " + strings.Join(subjects, ", "))
}
