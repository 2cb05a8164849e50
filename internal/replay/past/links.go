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

// A Link opens the page in a browser, once.
type Link struct{ Page, Code string }

// A Focus is the part that the page shows first. The link omits empty fields.
type Focus struct{ Cluster, At, Resource, Namespace, Name string }

// URL returns the link with a focus. The code and the focus are after "#", so that no server and no proxy sees them.
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

// readable reverts escapes that are not needed after "#".
var readable = strings.NewReplacer("%3A", ":", "%2F", "/")

// Links requests links to a server's page.
type Links struct{ *client }

// NewLinks returns a client of a server. Close closes it.
func NewLinks(access *serve.Access) (*Links, error) {
	c, err := newClient(configOf(access), access.URL, "a link", page.Lifetime+answersWithin)
	return &Links{c}, err
}

// New returns a new link.
func (l *Links) New(ctx context.Context) (Link, error) {
	var given page.Code
	err := l.ask(ctx, http.MethodPost, page.NewPath, nil, &given)
	if apierrors.IsNotFound(err) {
		return Link{}, errors.New("the running server has no page: end it, and start it without --page=false")
	}
	return Link{Page: given.Page, Code: given.Code}, err
}

// Await waits until a browser used the link, or its time is over, and reports whether it was used. The server treats the
// request as a watch, and ends it when it stops.
func (l *Links) Await(ctx context.Context, link Link) (used bool, err error) {
	var answer page.Code
	err = l.ask(ctx, http.MethodPost, page.AwaitPath+"?watch=1", page.Code{Code: link.Code}, &answer)
	return answer.Used, err
}
