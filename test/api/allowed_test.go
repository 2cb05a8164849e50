package api_test

import (
	"encoding/base64"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// This file is the closed list of the ways in which our answers may differ from those of the real API server. Any other
// difference is a fault. An entry that a run does not need is one, too.

// An allowance is one way to differ.
type allowance struct {
	name, reason string
	// mend makes both answers equal where they differ in this way, and reports whether they did.
	mend func(s *system, p pair, theirs, ours *answer) bool
	used *atomic.Int64
}

type allowances struct {
	system *system
	list   []allowance
}

func newAllowances(s *system) allowances {
	a := allowances{system: s, list: []allowance{
		{name: "the version of a list", mend: mendListVersion,
			reason: "etcd gives one version to the whole cluster. The record has one for each stream: that of the last thing that it was told, by a bookmark at the latest."},
		{name: "the version at which initial events end", mend: mendBookmark,
			reason: "It is that of a list."},
		{name: "continue tokens", mend: mendContinue,
			reason: "They are opaque. Ours carry the seq, and a proof that this server made them."},
		{name: "the newest version, in a refusal", mend: mendTooLarge,
			reason: "A refusal of a version that is still to come names the newest one, which is that of the stream."},
		{name: "a version to come, at the start of a watch", mend: mendWatchTooLarge,
			reason: "The real server waits for it. At an instant nothing comes later, and ours says so at once."},
		{name: "empty fields of a bookmark", mend: mendEmpty,
			reason: "Nobody reads them. The types of these kinds are compiled into API servers only."},
		{name: "annotations that only a version has", mend: mendAnnotations,
			reason: "The real server reads metadata out of its internal version. Ours is that of the version asked for, which has these as well."},
		{name: "malformed versions", mend: mendMalformed,
			reason: "For a get or a watch the real server takes them for a fault of its own, and says 500. Ours says 400, as both do for a list."},
		{name: "cells of a bookmark", mend: mendBookmarkCells,
			reason: "Nobody reads them. The real server prints an object without defaults there."},
		{name: "what is wrong with a continue token", mend: mendToken,
			reason: "The tokens are not of one form. A bad one is refused as well; one that another server may have made has expired."},
		{name: "forms that nobody serves", mend: mendForm,
			reason: "The real server refuses with 406. Ours answers in JSON, which every client can read."},
		{name: "addresses of the server", mend: mendAddress,
			reason: "They are not the same server."},
		{name: "legacy discovery", mend: mendLegacy,
			reason: "It is made of aggregated discovery, in that one's order, and that has no hashes of storage versions."},
		{name: "the media type of the OpenAPI index", mend: mendIndex,
			reason: "The real server calls its JSON plain text."},
		{name: "ages", mend: mendAges,
			reason: "The real server counts them up to the time of the answer. Ours counts them up to the instant."},
		{name: "values of Secrets", mend: mendSecrets,
			reason: "The record has keyed hashes in their place."},
		{name: "what is not recorded", mend: mendUnrecorded,
			reason: "A resource that cannot be watched is not on record. Ours says so with 404."},
		{name: "versions that a webhook converts", mend: mendConverted,
			reason: "The record has objects in one version, and the webhook of then cannot be asked. Ours refuses the others."},
		{name: "verbs and subresources", mend: mendVerbs,
			reason: "The past cannot be written. It has the subresources status and scale, to read. What is not on record keeps its entry without verbs."},
	}}
	for i := range a.list {
		a.list[i].used = new(atomic.Int64)
	}
	return a
}

func (a allowances) mend(p pair, theirs, ours *answer) {
	for _, each := range a.list {
		if each.mend(a.system, p, theirs, ours) {
			each.used.Add(1)
		}
	}
	their, _ := at(theirs.body, "events").([]any)
	our, _ := at(ours.body, "events").([]any)
	for i := range min(len(their), len(our)) {
		a.mend(p, &answer{code: theirs.code, at: theirs.readAt(i), body: at(their[i], "object")}, &answer{code: ours.code, at: ours.readAt(i), body: at(our[i], "object")})
	}
}

// requireUsed fails for each entry that was not needed.
func (a allowances) requireUsed(t *testing.T) {
	t.Helper()
	for _, each := range a.list {
		t.Logf("allowed %d times: %s. %s", each.used.Load(), each.name, each.reason)
		if each.used.Load() == 0 {
			t.Errorf("no answer differs in %q any more: take it off the list", each.name)
		}
	}
}

// both gives a member of both answers, if it is a text in both that differs.
func both(theirs, ours *answer, names ...string) (their, our string, differ bool) {
	their, isText := at(theirs.body, names...).(string)
	our, areTexts := at(ours.body, names...).(string)
	return their, our, isText && areTexts && their != our
}

func set(a *answer, value any, names ...string) {
	last := len(names) - 1
	at(a.body, names[:last]...).(map[string]any)[names[last]] = value
}

// mendListVersion takes any version up to that of the real server, unless the question names it.
func mendListVersion(_ *system, p pair, theirs, ours *answer) bool {
	their, our, differ := both(theirs, ours, "metadata", "resourceVersion")
	name, _ := at(theirs.body, "kind").(string)
	if !differ || !strings.HasSuffix(name, "List") && name != "Table" || p.ours.query.Get("resourceVersionMatch") == "Exact" || !notAfter(our, their) {
		return false
	}
	set(ours, their, "metadata", "resourceVersion")
	return true
}

// mendBookmark is about an event's object, or about the only row of a table.
func mendBookmark(s *system, p pair, theirs, ours *answer) bool {
	theirRows, _ := at(theirs.body, "rows").([]any)
	ourRows, _ := at(ours.body, "rows").([]any)
	if len(theirRows) == 1 && len(ourRows) == 1 {
		mendBookmark(s, p, &answer{body: at(theirRows[0], "object")}, &answer{body: at(ourRows[0], "object")})
	}
	their, our, differ := both(theirs, ours, "metadata", "resourceVersion")
	if !differ || !endsInitialEvents(theirs.body) || !endsInitialEvents(ours.body) || !notAfter(our, their) {
		return false
	}
	set(ours, their, "metadata", "resourceVersion")
	return true
}

func notAfter(a, b string) bool {
	order, known := delta.Compare(a, b)
	return known && order <= 0
}

func mendContinue(_ *system, _ pair, theirs, ours *answer) bool {
	their, _, differ := both(theirs, ours, "metadata", "continue")
	if differ {
		set(ours, their, "metadata", "continue")
	}
	return differ
}

var current = regexp.MustCompile(`, current: (\d+)`)

func mendTooLarge(_ *system, _ pair, theirs, ours *answer) bool {
	their, our, differ := both(theirs, ours, "message")
	newest, known := current.FindStringSubmatch(their), current.FindStringSubmatch(our)
	if !differ || newest == nil || known == nil || !notAfter(known[1], newest[1]) {
		return false
	}
	set(ours, strings.Replace(our, known[0], newest[0], 1), "message")
	return true
}

func mendWatchTooLarge(_ *system, p pair, theirs, ours *answer) bool {
	if p.ours.query.Get("watch") != "true" || theirs.code != http.StatusOK || ours.code != http.StatusGatewayTimeout || !strings.Contains(compact(ours.body), "Too large resource version") {
		return false
	}
	*ours = *theirs
	return true
}

func mendEmpty(_ *system, p pair, theirs, ours *answer) bool {
	if !strings.HasSuffix(p.kind.Group, "registration.k8s.io") && p.kind.Group != "apiextensions.k8s.io" || !endsInitialEvents(theirs.body) || !endsInitialEvents(ours.body) {
		return false
	}
	object, isObject := theirs.body.(map[string]any)
	_, mended := object["spec"]
	if !isObject || at(ours.body, "spec") != nil {
		return false
	}
	delete(object, "spec")
	delete(object, "status")
	return mended
}

// mendAnnotations goes through both for annotations.
func mendAnnotations(_ *system, p pair, theirs, ours *answer) bool {
	return (p.kind.Resource == "daemonsets" || p.kind.Resource == "horizontalpodautoscalers") && mendAnnotationsOf(theirs.body, ours.body)
}

func mendAnnotationsOf(theirs, ours any) (mended bool) {
	switch ours := ours.(type) {
	case map[string]any:
		theirs, _ := theirs.(map[string]any)
		annotations, _ := ours["annotations"].(map[string]any)
		known, _ := theirs["annotations"].(map[string]any)
		before := len(annotations)
		maps.DeleteFunc(annotations, func(name string, _ any) bool {
			written := name == "deprecated.daemonset.template.generation" || strings.HasPrefix(name, "autoscaling.alpha.kubernetes.io/")
			return written && known[name] == nil
		})
		mended = len(annotations) < before
		if mended && len(annotations) == 0 && known == nil {
			delete(ours, "annotations")
		}
		for name, our := range ours {
			mended = mendAnnotationsOf(theirs[name], our) || mended
		}
	case []any:
		theirs, _ := theirs.([]any)
		for i := range min(len(theirs), len(ours)) {
			mended = mendAnnotationsOf(theirs[i], ours[i]) || mended
		}
	}
	return mended
}

func mendMalformed(_ *system, p pair, theirs, ours *answer) bool {
	their, our, _ := both(theirs, ours, "message")
	if theirs.code != http.StatusInternalServerError || ours.code != http.StatusBadRequest || our != "invalid resource version: "+their {
		return false
	}
	*ours = *theirs
	return true
}

func mendBookmarkCells(_ *system, _ pair, theirs, ours *answer) bool {
	their, _ := at(theirs.body, "rows").([]any)
	our, _ := at(ours.body, "rows").([]any)
	if len(their) != 1 || len(our) != 1 || !endsInitialEvents(theirs.body) || !endsInitialEvents(ours.body) || len(differences("", at(their[0], "cells"), at(our[0], "cells"))) == 0 {
		return false
	}
	our[0].(map[string]any)["cells"] = at(their[0], "cells")
	return true
}

func mendToken(_ *system, p pair, theirs, ours *answer) bool {
	if !p.ours.query.Has("continue") || theirs.code != http.StatusBadRequest || at(theirs.body, "message") == at(ours.body, "message") {
		return false
	}
	if ours.code != http.StatusBadRequest && (ours.code != http.StatusGone || at(ours.body, "reason") != "Expired") {
		return false
	}
	*ours = *theirs
	return true
}

func mendForm(_ *system, _ pair, theirs, ours *answer) bool {
	if theirs.code != http.StatusNotAcceptable || ours.code != http.StatusOK || ours.mediaType != "application/json" {
		return false
	}
	*ours = *theirs
	return true
}

func mendAddress(_ *system, _ pair, theirs, ours *answer) bool {
	their, isList := at(theirs.body, "serverAddressByClientCIDRs").([]any)
	our, areLists := at(ours.body, "serverAddressByClientCIDRs").([]any)
	if !isList || !areLists || len(their) != len(our) {
		return false
	}
	for i := range their {
		our[i].(map[string]any)["serverAddress"] = at(their[i], "serverAddress")
	}
	return true
}

func mendLegacy(_ *system, _ pair, theirs, ours *answer) bool {
	their, isList := at(theirs.body, "resources").([]any)
	our, areLists := at(ours.body, "resources").([]any)
	if !isList || !areLists || at(theirs.body, "kind") != "APIResourceList" {
		return false
	}
	byName := func(a, b any) int { return strings.Compare(at(a, "name").(string), at(b, "name").(string)) }
	slices.SortFunc(their, byName)
	slices.SortFunc(our, byName)
	for _, resource := range their {
		delete(resource.(map[string]any), "storageVersionHash")
	}
	return true
}

func mendIndex(_ *system, p pair, theirs, ours *answer) bool {
	text, _ := theirs.body.(string)
	value, err := decode([]byte(text))
	if p.ours.path != "/openapi/v3" || err != nil || theirs.mediaType != "text/plain" || ours.mediaType != "application/json" {
		return false
	}
	theirs.body, theirs.mediaType = value, ours.mediaType
	return true
}

// mendAges compares durations in the cells of tables.
func mendAges(s *system, p pair, theirs, ours *answer) (mended bool) {
	if at(theirs.body, "kind") != "Table" || at(ours.body, "kind") != "Table" {
		return false
	}
	their, _ := at(theirs.body, "rows").([]any)
	our, _ := at(ours.body, "rows").([]any)
	late := theirs.at.Sub(p.at.at)
	for i := range min(len(their), len(our)) {
		theirCells, _ := at(their[i], "cells").([]any)
		ourCells, _ := at(our[i], "cells").([]any)
		for j := range min(len(theirCells), len(ourCells)) {
			if theirCells[j] != ourCells[j] && sameAge(theirCells[j], ourCells[j], late) {
				ourCells[j], mended = theirCells[j], true
			}
		}
	}
	return mended
}

var ages = regexp.MustCompile(`(\d+[ydhms])+`)

// sameAge compares the durations in a text of now with those of an instant that was so long ago.
func sameAge(theirs, ours any, late time.Duration) bool {
	their, _ := theirs.(string)
	our, _ := ours.(string)
	if their == "" || ages.ReplaceAllString(their, "") != ages.ReplaceAllString(our, "") {
		return false
	}
	was := ages.FindAllString(our, -1)
	for i, now := range ages.FindAllString(their, -1) {
		// Both are cut off to what they show, and the real server may have written that some time before it was read.
		off := seconds(now) - seconds(was[i]) - late
		if off < -step(now)-10*time.Second || off > step(was[i]) {
			return false
		}
	}
	return true
}

func seconds(age string) (sum time.Duration) {
	for _, part := range regexp.MustCompile(`(\d+)([ydhms])`).FindAllStringSubmatch(age, -1) {
		n, _ := strconv.Atoi(part[1])
		sum += time.Duration(n) * units[part[2]]
	}
	return sum
}

// step is the smallest unit that an age shows.
func step(age string) time.Duration { return units[age[len(age)-1:]] }

var units = map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour, "y": 365 * 24 * time.Hour}

// mendSecrets takes a hash for each value of a Secret, wherever one is in the answers.
func mendSecrets(_ *system, p pair, theirs, ours *answer) bool {
	return p.kind.Group == "" && p.kind.Resource == "secrets" && mendData(theirs.body, ours.body)
}

// mendData goes through both for members named data.
func mendData(theirs, ours any) (mended bool) {
	switch theirs := theirs.(type) {
	case map[string]any:
		ours, _ := ours.(map[string]any)
		for name, their := range theirs {
			if name == "data" {
				mended = mendValues(their, ours[name]) || mended
			} else {
				mended = mendData(their, ours[name]) || mended
			}
		}
	case []any:
		ours, _ := ours.([]any)
		for i := range min(len(theirs), len(ours)) {
			mended = mendData(theirs[i], ours[i]) || mended
		}
	}
	return mended
}

func mendValues(theirs, ours any) (mended bool) {
	their, _ := theirs.(map[string]any)
	our, _ := ours.(map[string]any)
	for key := range their {
		text, _ := our[key].(string)
		hash, err := base64.StdEncoding.DecodeString(text)
		if err == nil && strings.HasPrefix(string(hash), "hmac-sha256:") {
			our[key], mended = their[key], true
		}
	}
	return mended
}

// mendUnrecorded takes a refusal for what the real server can list and not watch.
func mendUnrecorded(_ *system, p pair, theirs, ours *answer) bool {
	if p.kind.watched || p.kind.Resource == "" || ours.code != http.StatusNotFound || at(ours.body, "kind") != "Status" || at(ours.body, "reason") != "NotFound" {
		return false
	}
	*ours = *theirs
	return true
}

func mendConverted(_ *system, p pair, theirs, ours *answer) bool {
	status := ours.body
	if events, _ := at(ours.body, "events").([]any); len(events) > 0 && at(events[len(events)-1], "type") == "ERROR" {
		status = at(events[len(events)-1], "object")
	}
	if p.kind.Resource != "springs" || theirs.code != http.StatusOK || at(status, "kind") != "Status" {
		return false
	}
	*ours = *theirs
	return true
}

// mendVerbs makes of the real server's discovery what ours must say.
func mendVerbs(s *system, _ pair, theirs, _ *answer) (mended bool) {
	list, _ := theirs.body.(map[string]any)
	switch list["kind"] {
	case "APIResourceList":
		list["resources"], mended = readOnly(list["resources"], "name", list["groupVersion"].(string), s)
	case "APIGroupDiscoveryList":
		for _, group := range list["items"].([]any) {
			name, _ := at(group, "metadata", "name").(string)
			versions, _ := at(group, "versions").([]any)
			for _, version := range versions {
				version := version.(map[string]any)
				groupVersion := strings.TrimPrefix(name+"/"+version["version"].(string), "/")
				if version["resources"] != nil {
					version["resources"], mended = readOnly(version["resources"], "resource", groupVersion, s)
				}
			}
		}
	}
	return mended
}

// toRead keeps the subresources that the past has. Their names are members of that name.
func toRead(subresources []any, member string) []any {
	kept := []any{}
	for _, each := range subresources {
		subresource := each.(map[string]any)
		name := subresource[member].(string)
		if (strings.HasSuffix(name, "status") || strings.HasSuffix(name, "scale")) && slices.Contains(subresource["verbs"].([]any), any("get")) {
			subresource["verbs"] = []any{"get"}
			kept = append(kept, subresource)
		}
	}
	return kept
}

// readOnly trims the verbs of resources, whose names are members of that name.
func readOnly(resources any, member, groupVersion string, s *system) ([]any, bool) {
	kept := []any{}
	for _, each := range resources.([]any) {
		resource := each.(map[string]any)
		name := resource[member].(string)
		if name, subresource, _ := strings.Cut(name, "/"); subresource != "" {
			if s.watches(groupVersion, name) {
				kept = append(kept, toRead([]any{resource}, member)...)
			}
			continue
		}
		subresources, _ := resource["subresources"].([]any)
		if subresources = toRead(subresources, "subresource"); len(subresources) > 0 && s.watches(groupVersion, name) {
			resource["subresources"] = subresources
		} else {
			delete(resource, "subresources")
		}
		verbs := slices.DeleteFunc(resource["verbs"].([]any), func(verb any) bool { return !slices.Contains([]any{"get", "list", "watch"}, verb) })
		if !s.watches(groupVersion, name) {
			verbs = []any{}
		}
		resource["verbs"] = verbs
		kept = append(kept, resource)
	}
	return kept, true
}
