package past

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

// A Link leads a browser to the page, once.
type Link struct{ Page, Code string }

// A Focus is what the page shows first. Empty parts are left out.
type Focus struct{ Cluster, At, Resource, Namespace, Name string }

// URL is the link with a focus. All of it stands behind "#", so that no server and no proxy sees it.
func (l Link) URL(f Focus) string {
	var b strings.Builder
	b.WriteString(l.Page + "#code=" + l.Code)
	for _, each := range [][2]string{
		{"cluster", f.Cluster}, {"at", f.At}, {"resource", f.Resource}, {"namespace", f.Namespace}, {"name", f.Name},
	} {
		if each[1] != "" {
			b.WriteString("&" + each[0] + "=" + readable.Replace(url.QueryEscape(each[1])))
		}
	}
	return b.String()
}

// readable takes back what need not be escaped behind "#".
var readable = strings.NewReplacer("%3A", ":", "%2F", "/")

// Links asks a server for links to its page.
type Links struct{ *client }

// NewLinks makes a client of a server. Close closes it.
func NewLinks(access *serve.Access) (*Links, error) {
	c, err := newClient(configOf(access), access.URL, "a link", page.Lifetime+answersWithin)
	return &Links{c}, err
}

// New gives a link.
func (l *Links) New(ctx context.Context) (Link, error) {
	var given page.Code
	err := l.ask(ctx, http.MethodPost, page.NewPath, nil, &given)
	if apierrors.IsNotFound(err) {
		return Link{}, errors.New("the running server has no page: end it, and start it without --page=false")
	}
	return Link{Page: given.Page, Code: given.Code}, err
}

// Await returns once a link was used, or false if it was not used in its time. The server takes the request for a watch, and ends it with
// itself.
func (l *Links) Await(ctx context.Context, link Link) (used bool, err error) {
	var answer page.Code
	err = l.ask(ctx, http.MethodPost, page.AwaitPath+"?watch=1", page.Code{Code: link.Code}, &answer)
	return answer.Used, err
}
