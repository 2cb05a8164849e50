package session

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/apiserver/internal/clock"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/internal/jsonbody"
)

// Prefix is the path of the JSON API.
const Prefix = "/session/v1"

// maxBody is larger than any valid Change.
const maxBody = 64 << 10

// Handles reports whether a path belongs to the JSON API.
func Handles(path string) bool { return path == Prefix || strings.HasPrefix(path, Prefix+"/") }

// ServeAPI answers a request of the JSON API. If it returns an error, that error is the answer.
func (r *Registry) ServeAPI(w http.ResponseWriter, req *http.Request) error {
	name := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, Prefix), "/")
	if name == "" {
		return r.serveList(w, req)
	}
	if err := validName(name); err != nil {
		return err
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead:
		return r.serveState(w, name)
	case http.MethodPut:
		return r.put(w, req, name)
	case http.MethodDelete:
		return r.delete(w, req, name)
	}
	return jsonbody.NotAllowed(w, req, resource, "GET, PUT, DELETE")
}

func validName(name string) error {
	if name == Live {
		return apierrors.NewBadRequest(`"live" is the fixed session at the end of the record and cannot be changed; choose another name`)
	}
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return apierrors.NewBadRequest("the name of a session must be a DNS label, such as night-1: " + faults[0])
	}
	return nil
}

// A List is the answer to a request for all sessions.
type List struct {
	Sessions []State `json:"sessions"`
}

func (r *Registry) serveList(w http.ResponseWriter, req *http.Request) error {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		return jsonbody.NotAllowed(w, req, resource, "GET")
	}
	l := List{Sessions: []State{}}
	for _, s := range r.list() {
		l.Sessions = append(l.Sessions, s.state(time.Now()))
	}
	wire.Value(w, http.StatusOK, l)
	return nil
}

func (r *Registry) notFound(name string) error {
	err := apierrors.NewNotFound(resource, name)
	err.ErrStatus.Message = r.missing(name)
	return err
}

func (r *Registry) serveState(w http.ResponseWriter, name string) error {
	s := r.find(name)
	if s == nil {
		return r.notFound(name)
	}
	return s.answer(w, http.StatusOK, nil)
}

// answer writes the state. It counts as a request.
func (s *session) answer(w http.ResponseWriter, code int, notes []string) error {
	if exit, ok := s.use.enter(); ok {
		exit()
	}
	state := s.state(time.Now())
	state.Notes = notes
	wire.Value(w, code, state)
	return nil
}

// userOf returns the user of a request. If the listener does not authenticate, all requests have the same user.
func userOf(r *http.Request) string {
	if caller, ok := request.UserFrom(r.Context()); ok {
		return caller.GetName()
	}
	return ""
}

// owned refuses a user who does not own the session.
func (s *session) owned(r *http.Request) error {
	if user := userOf(r); user != s.owner {
		return apierrors.NewForbidden(resource, s.name, fmt.Errorf("it belongs to %q: only its owner can move or end it; create your own session with another name", s.owner))
	}
	return nil
}

func (r *Registry) delete(w http.ResponseWriter, req *http.Request, name string) error {
	s := r.find(name)
	if s == nil {
		return r.notFound(name)
	}
	if err := s.owned(req); err != nil {
		return err
	}
	state := s.state(time.Now())
	s.use.end()
	s.stop()
	r.remove(s)
	wire.Value(w, http.StatusOK, state)
	return nil
}

func (r *Registry) put(w http.ResponseWriter, req *http.Request, name string) error {
	change := &Change{}
	if err := jsonbody.Read(w, req, maxBody, `{"at": "2026-01-31T03:12:00Z", "playing": true, "speed": 60}`, change); err != nil {
		return err
	}
	if s := r.find(name); s != nil {
		return r.change(w, req, s, change)
	}
	return r.create(w, req, name, change)
}

func (r *Registry) create(w http.ResponseWriter, req *http.Request, name string, change *Change) error {
	uid, err := r.clusterOf(change)
	if err != nil {
		return err
	}
	if change.At == nil {
		return apierrors.NewBadRequest(fmt.Sprintf(`there is no session %q yet: say where it begins with "at", such as "-10m", "seq:123" or a time`, name))
	}
	at, err := find(req.Context(), r.clusters[uid], *change.At)
	if err != nil {
		return err
	}
	c, err := change.applied(clock.New(at.time), time.Now(), at, at.time)
	if err != nil {
		return err
	}
	s, err := r.make(name, userOf(req), uid, c, at)
	if err != nil {
		return err
	}
	return s.answer(w, http.StatusCreated, at.notes)
}

// clusterOf returns the cluster of a new session.
func (r *Registry) clusterOf(change *Change) (uid string, err error) {
	served := slices.Sorted(maps.Keys(r.clusters))
	if change.Cluster == nil && len(served) == 1 {
		return served[0], nil
	}
	if change.Cluster == nil {
		return "", apierrors.NewBadRequest(`several clusters are served: set "cluster" to one of ` + strings.Join(served, ", "))
	}
	if _, ok := r.clusters[*change.Cluster]; !ok {
		return "", apierrors.NewBadRequest(fmt.Sprintf(`no cluster with UID %.60q is served here: "cluster" is one of %s`, *change.Cluster, strings.Join(served, ", ")))
	}
	return *change.Cluster, nil
}

func (r *Registry) change(w http.ResponseWriter, req *http.Request, s *session, change *Change) error {
	if err := s.owned(req); err != nil {
		return err
	}
	if change.Cluster != nil && *change.Cluster != s.cluster {
		return apierrors.NewBadRequest(fmt.Sprintf("session %s belongs to cluster %s, which cannot be changed: end it first, or choose another name", s.name, s.cluster))
	}
	exit, ok := s.use.enter()
	if !ok {
		return r.notFound(s.name)
	}
	defer exit()
	var at *place
	var notes []string
	if change.At != nil {
		var err error
		if at, err = find(req.Context(), s.steps.past, *change.At); err != nil {
			return err
		}
		notes = at.notes
	}
	if err := s.set(req.Context(), change, at); err != nil {
		return err
	}
	return s.answer(w, http.StatusOK, notes)
}
