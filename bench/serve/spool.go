package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
)

// A frame is the place of an event in its file, with the facts that are needed without reading it.
type frame struct {
	end    int64 // in the file of frames; it begins at the end of the previous one
	object int32 // of resource.objects
	global int32 // number of the event among those of all resources
	kind   byte  // index of kinds
	rv     uint64
}

var kinds = [...]watch.EventType{watch.Added, watch.Modified, watch.Deleted}

func prefix(kind byte) string { return fmt.Sprintf(`{"type":%q,"object":`, kinds[kind]) }

const suffix = "}\n"

// An object is one that lives, or has lived.
type object struct {
	namespace, name, uid string
	first                bool // its newest version is among the first objects, not the frames
	begin, end           int64
}

// A resource is what is served of one.
type resource struct {
	data.Resource
	index  int
	frames []frame
	// objects are all that there ever are; the first ones come first, in the order of lists.
	objects []object
	living  []int32 // at the beginning, as indices of objects
	files   [2]*os.File
}

// The files of a resource.
const (
	fileFirst = iota
	fileFrames
)

// spool writes a Set into files of a folder, a pair for each resource. They are on disk then: while something is measured that waits for the disk, nothing of them
// has to be written any more. The last resource version of the beginning is returned. A gate has to be between two writes.
func spool(set data.Set, dir string, gate int) (all []*resource, first uint64, err error) {
	var writers []*bufio.Writer
	for i, r := range set.Resources() {
		res := &resource{Resource: r, index: i}
		all = append(all, res)
		for f, name := range []string{"first", "frames"} {
			if res.files[f], err = os.Create(filepath.Join(dir, fmt.Sprintf("%d.%s", i, name))); err != nil {
				return all, 0, err
			}
			writers = append(writers, bufio.NewWriterSize(res.files[f], 1<<20))
		}
	}
	s := &spooler{all: all, writers: writers, known: map[string]int32{}, gate: gate}
	for e := range set.First() {
		first = max(first, e.RV)
		if err := s.first(e); err != nil {
			return all, 0, err
		}
	}
	for e, err := range set.Events() {
		if err == nil {
			err = s.event(e)
		}
		if err != nil {
			return all, 0, err
		}
	}
	var errs []error
	for i, w := range writers {
		errs = append(errs, w.Flush(), all[i/2].files[i%2].Sync())
	}
	return all, first, errors.Join(errs...)
}

type spooler struct {
	all     []*resource
	writers []*bufio.Writer
	known   map[string]int32 // objects by UID
	events  int32
	gate    int
	rv      uint64 // of the event before
}

// bare is an object as it stands in a list.
func bare(r data.Resource, object []byte) ([]byte, error) {
	for _, order := range []string{`{"kind":%q,"apiVersion":%q,`, `{"apiVersion":%[2]q,"kind":%[1]q,`} {
		if rest, ok := bytes.CutPrefix(object, fmt.Appendf(nil, order, r.Kind, r.APIVersion())); ok {
			return append([]byte("{"), rest...), nil
		}
	}
	return nil, fmt.Errorf("an object of %s does not begin with its kind and apiVersion: %.80s", r.Resource, object)
}

func (s *spooler) first(e data.Event) error {
	res := s.all[e.Resource]
	doc, err := bare(res.Resource, e.Object)
	if err != nil {
		return err
	}
	begin := int64(0)
	if n := len(res.objects); n > 0 {
		begin = res.objects[n-1].end
	}
	o := object{namespace: e.Namespace, name: e.Name, uid: e.UID, first: true, begin: begin, end: begin + int64(len(doc))}
	s.known[e.UID] = int32(len(res.objects))
	res.living = append(res.living, int32(len(res.objects)))
	res.objects = append(res.objects, o)
	_, err = s.writers[2*e.Resource+fileFirst].Write(doc)
	return err
}

func (s *spooler) event(e data.Event) error {
	res := s.all[e.Resource]
	if _, err := bare(res.Resource, e.Object); err != nil {
		return err
	}
	if s.gate > 0 && int(s.events) == s.gate && e.RV == s.rv {
		return fmt.Errorf("after %d events not all of resource version %d have come: they are one write, and cannot be held back in part", s.gate, e.RV)
	}
	f := frame{global: s.events, rv: e.RV}
	s.events, s.rv = s.events+1, e.RV
	for k, kind := range kinds {
		if kind == e.Type {
			f.kind = byte(k)
		}
	}
	var found bool
	if f.object, found = s.known[e.UID]; !found {
		f.object = int32(len(res.objects))
		s.known[e.UID] = f.object
		res.objects = append(res.objects, object{namespace: e.Namespace, name: e.Name, uid: e.UID})
	}
	if e.Type == watch.Deleted {
		delete(s.known, e.UID)
	}
	n := 0
	for _, part := range [][]byte{[]byte(prefix(f.kind)), e.Object, []byte(suffix)} {
		written, err := s.writers[2*e.Resource+fileFrames].Write(part)
		if err != nil {
			return err
		}
		n += written
	}
	f.end = res.frameBegin(len(res.frames)) + int64(n)
	res.frames = append(res.frames, f)
	return nil
}

// frameBegin is where the i-th frame begins.
func (r *resource) frameBegin(i int) int64 {
	if i == 0 {
		return 0
	}
	return r.frames[i-1].end
}
