package data

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
)

// A hole is a place in a text where objects and versions differ.
type hole int

const (
	holeName hole = iota
	holeNamespace
	holeUID
	holeRV
	holeCreated // when it was created
	holeChanged // when this version was written
	holeApp
	holeHash // of a Pod template
	holeTag  // of the image, whose digest follows from it
	holeOwner
	holeOwnerUID
	holeNode
	holeHost // address of the node
	holeIP   // address of the Pod
	holeID   // of a container, and other random text of 64 digits
	holeID2  // of a Pod's other container
	holeDigest
	holeDatabase // this and the next four are settings of an app
	holeLog
	holeTracing
	holeCPU
	holeMemory
	holeBound // when a Pod was scheduled, or a rollout began
	holeStarted
	holeReady // True or False
	holeUp    // true or false
	holeReadySince
	holePhase
	holeReason
	holeMessage
	holeComponent
	holeKind
	holeRestarts   // and how often an Event was seen
	holeGeneration // and, in an Event, the resource version of what it is about
	holeReplicas   // wanted
	holeMade       // of them, there are
	holeServing    // of them, ready
	holes
)

var holeNames = [holes]string{
	"name", "namespace", "uid", "rv", "created", "changed", "app", "hash", "tag", "owner", "owneruid", "node", "host", "ip", "id", "id2", "digest", "database", "log", "tracing", "cpu", "memory", "bound", "started",
	"ready", "up", "readysince", "phase", "reason", "message", "component", "kind", "restarts", "generation", "replicas", "made", "serving",
}

// values fill the holes of one version. They are plain text: nothing in them needs an escape in JSON.
type values [holes]string

// runs fills in the app whose image the Pod runs, and what follows from it. Each app has its own settings. An image has one
// digest wherever it runs.
func (v *values) runs(app, tag string) {
	of := sha256.Sum256([]byte(app))
	v[holeApp], v[holeTag], v[holeDigest] = app, tag, digestOf(app+":"+tag)
	v[holeDatabase] = fmt.Sprintf("pg-%x.databases.svc.cluster.local", of[:3])
	v[holeLog] = []string{"debug", "info", "warn", "error"}[of[3]%4]
	v[holeTracing] = fmt.Sprintf("https://%x.collector.example.com:4317/v1/traces", of[4:8+of[8]%8])
	v[holeCPU] = fmt.Sprintf("%dm", 25+50*int(of[16]%40))
	v[holeMemory] = fmt.Sprintf("%dMi", 65+int(of[17])*8)
}

// digestOf stands for that of an image.
func digestOf(image string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(image))) }

// A text is the JSON of an object with holes, so that a version costs little more than copying it.
type text struct {
	parts []string
	holes []hole // one between every two parts
	size  int    // of the parts
}

// newText makes a text of JSON with holes: <name> is a hole in a string, and the string "<#name>" a hole for a number.
func newText(source string) (*text, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(source)); err != nil {
		return nil, fmt.Errorf("a template of objects: %w", err)
	}
	t := &text{}
	for rest := compact.String(); ; {
		before, after, found := strings.Cut(rest, "<")
		mark, after, closed := strings.Cut(after, ">")
		if number, ok := strings.CutPrefix(mark, "#"); ok {
			before, after, mark = strings.TrimSuffix(before, `"`), strings.TrimPrefix(after, `"`), number
		}
		t.parts, t.size = append(t.parts, before), t.size+len(before)
		if !found {
			return t, nil
		}
		h := holeNamed(mark)
		if h == holes || !closed {
			return nil, fmt.Errorf("a template of objects: no hole is called %q", mark)
		}
		t.holes = append(t.holes, h)
		rest = after
	}
}

// holeNamed gives holes for a name that there is not.
func holeNamed(name string) hole {
	for h, n := range holeNames {
		if n == name {
			return hole(h)
		}
	}
	return holes
}

// fill gives a document with memory of its own.
func (t *text) fill(v *values) []byte {
	size := t.size
	for _, h := range t.holes {
		size += len(v[h])
	}
	doc := make([]byte, 0, size)
	for i, h := range t.holes {
		doc = append(doc, t.parts[i]...)
		doc = append(doc, v[h]...)
	}
	return append(doc, t.parts[len(t.parts)-1]...)
}
