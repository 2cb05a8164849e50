package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// collection answers a list or a watch.
func (s *Server) collection(w http.ResponseWriter, req *http.Request, r *resource) {
	q := req.URL.Query()
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		s.watch(w, req, r)
		return
	}
	namespace, name := req.PathValue("namespace"), ""
	if field := q.Get("fieldSelector"); field != "" {
		var found bool
		if name, found = strings.CutPrefix(field, "metadata.name="); !found {
			refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "fields other than metadata.name are not served: "+field)
			return
		}
	}
	v := s.state.view(r, func(o object) bool {
		return (namespace == "" || o.namespace == namespace) && (name == "" || o.name == name)
	})
	if asked := q.Get("resourceVersion"); asked != "" && !shows(w, v, asked, q.Get("resourceVersionMatch")) {
		return
	}
	s.list(w, r, v, q.Get("limit"), q.Get("continue"))
}

// shows reports whether a list may be answered with a view, and says so where not, in the words of etcd and the API server.
func shows(w http.ResponseWriter, v view, asked, match string) bool {
	rv, err := strconv.ParseUint(asked, 10, 64)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "resourceVersion: "+asked)
	case rv > v.newest:
		refuse(w, http.StatusGatewayTimeout, metav1.StatusReasonTimeout, fmt.Sprintf("Too large resource version: %d, current: %d", rv, v.newest),
			metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"})
	case match == string(metav1.ResourceVersionMatchExact) && (rv < v.oldest || rv > v.rv):
		refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The provided resource version is too old: only the newest one is kept")
	default:
		return true
	}
	return false
}

// A token says where the next page of a list begins.
type token struct {
	RV   uint64
	From int
}

func (s *Server) list(w http.ResponseWriter, r *resource, v view, limit, next string) {
	from, to := 0, len(v.objects)
	if next != "" {
		var t token
		if err := json.Unmarshal([]byte(next), &t); err != nil || t.RV < v.oldest || t.RV > v.rv || t.From > to {
			refuse(w, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old to display a consistent list result.")
			return
		}
		from, v.rv = t.From, t.RV
	}
	if n, err := strconv.Atoi(limit); err == nil && n > 0 && from+n < to {
		to = from + n
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(v.rv, 10)}
	if to < len(v.objects) {
		text, _ := json.Marshal(token{v.rv, to}) // two numbers
		left := int64(len(v.objects) - to)
		meta.Continue, meta.RemainingItemCount = string(text), &left
	}
	head, _ := json.Marshal(meta) // strings and a number
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(w, chunk)
	fmt.Fprintf(out, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, r.Kind+"List", r.APIVersion(), head)
	for i, o := range v.objects[from:to] {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		text, err := r.read(o)
		if err == nil && !o.first {
			text, err = bare(r.Resource, text)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // aborts the answer, so that no client takes it for complete
		}
		_, _ = out.Write(text) // who asked may have gone
	}
	fmt.Fprint(out, "]}\n")
	_ = out.Flush()
}

// read gives the text of an object, bare if it is one of the first.
func (r *resource) read(o object) ([]byte, error) {
	file := r.files[fileFrames]
	if o.first {
		file = r.files[fileFirst]
	}
	text := make([]byte, o.end-o.begin)
	_, err := file.ReadAt(text, o.begin)
	return text, err
}

// whole gives the text of an object with its kind and apiVersion.
func (r *resource) whole(o object) ([]byte, error) {
	text, err := r.read(o)
	if err != nil || !o.first {
		return text, err
	}
	return append(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, r.Kind, r.APIVersion()), text[1:]...), nil
}

// one answers a GET by name.
func (s *Server) one(w http.ResponseWriter, req *http.Request, r *resource) {
	v := s.state.view(r, func(o object) bool {
		return o.namespace == req.PathValue("namespace") && o.name == req.PathValue("name")
	})
	if len(v.objects) == 0 {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("%s %q not found", r.Resource.Resource, req.PathValue("name")))
		return
	}
	text, err := r.whole(v.objects[0])
	if err != nil {
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // who asked may have gone
}

// from says after which resource version a watch goes on, and which events it gets before that, or refuses it.
func (s *Server) from(w http.ResponseWriter, r *resource, asked string, initial bool) (rv uint64, living []object, ok bool) {
	if initial {
		v := s.state.view(r, func(object) bool { return true })
		return v.rv, v.objects, asked == "" || shows(w, v, asked, "")
	}
	rv, err := strconv.ParseUint(asked, 10, 64)
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "a watch needs a resourceVersion")
	case rv < s.state.first:
		refuse(w, http.StatusGone, metav1.StatusReasonExpired, fmt.Sprintf("too old resource version: %d (%d)", rv, s.state.first))
	default:
		return rv, nil, true
	}
	return 0, nil, false
}

// watch sends the writes after a resource version. With sendInitialEvents, it sends the living objects and the writes from then
// on.
func (s *Server) watch(w http.ResponseWriter, req *http.Request, r *resource) {
	q := req.URL.Query()
	initial := q.Get("sendInitialEvents") == "true"
	rv, living, ok := s.from(w, r, q.Get("resourceVersion"), initial)
	if !ok {
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	timeout := time.Duration(math.MaxInt64)
	if seconds, err := strconv.Atoi(q.Get("timeoutSeconds")); err == nil {
		timeout = time.Duration(seconds) * time.Second
	}
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := &stream{state: s.state, resource: r, out: w, flush: http.NewResponseController(w).Flush, next: sort.Search(len(r.frames), func(i int) bool { return r.frames[i].rv > rv })}
	if q.Get("allowWatchBookmarks") == "true" && (r.Resource.Resource != "events" || r.Group != "") { // an API server has no cache of those
		ticker := time.NewTicker(s.options.Bookmarks)
		defer ticker.Stop()
		out.bookmarks = ticker.C
	}
	if initial && out.initial(living, rv) != nil || out.flush() != nil {
		return
	}
	s.state.watching(r, 1)
	defer s.state.watching(r, -1)
	_ = out.run(ctx) // the client has gone, or is to come again
}

// A stream is one watch.
type stream struct {
	state     *state
	resource  *resource
	out       io.Writer
	flush     func() error
	next      int // frame
	bookmarks <-chan time.Time
}

// initialEnd is what the bookmark after the last initial event has.
const initialEnd = `"annotations":{"` + metav1.InitialEventsAnnotationKey + `":"true"},`

// initial sends what lives as a list does, but as events, and a bookmark that ends them.
func (s *stream) initial(living []object, rv uint64) error {
	out := bufio.NewWriterSize(s.out, chunk)
	for _, o := range living {
		text, err := s.resource.whole(o)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s%s%s", prefix(added), text, suffix)
	}
	if err := s.mark(out, rv, initialEnd); err != nil {
		return err
	}
	return out.Flush()
}

// mark writes a bookmark.
func (s *stream) mark(out io.Writer, rv uint64, annotations string) error {
	_, err := fmt.Fprintf(out, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d",%s"creationTimestamp":null}}}`+"\n",
		s.resource.Kind, s.resource.APIVersion(), rv, annotations)
	return err
}

func (s *stream) run(ctx context.Context) error {
	buffer := make([]byte, chunk)
	for ctx.Err() == nil {
		to := s.state.await(ctx, s.resource, s.next, s.bookmarks)
		var err error
		if to > s.next {
			err = s.send(to, buffer)
		} else if ctx.Err() == nil {
			err = s.bookmark()
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// send sends frames up to one.
func (s *stream) send(to int, buffer []byte) error {
	begin, end := s.resource.frameBegin(s.next), s.resource.frames[to-1].end
	s.next = to
	_, err := io.CopyBuffer(struct{ io.Writer }{s.out}, io.NewSectionReader(s.resource.files[fileFrames], begin, end-begin), buffer)
	if err != nil {
		return err
	}
	return s.flush()
}

func (s *stream) bookmark() error {
	rv, current := s.state.version(s.resource, s.next)
	if !current {
		return nil // there is more to send
	}
	if err := s.mark(s.out, rv, ""); err != nil {
		return err
	}
	return s.flush()
}
