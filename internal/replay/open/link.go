package open

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

// An Answer is the output of -o json.
type Answer struct {
	URL     string    `json:"url"`     // opens the page once
	Page    string    `json:"page"`    // its address, for a browser that has a token
	SSH     string    `json:"ssh"`     // command to run on the machine of the browser
	Expires time.Time `json:"expires"` // end of the URL's validity
	Cluster string    `json:"cluster"` // the UID
	At      string    `json:"at,omitempty"`
}

// openLink opens a link in a browser, or prints it.
func (c *command) openLink(ctx context.Context, access *serve.Access, focus past.Focus) error {
	links, err := past.NewLinks(access)
	if err != nil {
		return err
	}
	defer links.Close()
	link, err := links.New(ctx)
	if err != nil {
		return err
	}
	answer := c.answer(link, focus)
	if c.output == output.JSON {
		return output.WriteJSON(c.env.IOStreams.Out, answer, true)
	}
	program := opener(c.env)
	if program == "" {
		return c.print(answer)
	}
	failed, err := c.browse(ctx, program, answer.URL, func(ctx context.Context) (bool, error) { return links.Await(ctx, link) })
	if failed == "" {
		return err
	}
	c.env.Note(failed)
	return c.print(answer)
}

func (c *command) answer(link past.Link, focus past.Focus) *Answer {
	return &Answer{
		URL: link.URL(focus), Page: link.Page, SSH: c.tunnel(link.Page), Expires: c.env.Now().Add(page.Lifetime).UTC().Truncate(time.Second),
		Cluster: focus.Cluster, At: focus.At,
	}
}

// print prints the link, and the command for a browser on another machine.
func (c *command) print(a *Answer) error {
	c.env.Note(fmt.Sprintf("the link opens the page once, within %s; if your browser is on another machine, run the ssh line there first", page.Lifetime))
	_, err := fmt.Fprintf(c.env.IOStreams.Out, "%s\n%s\n", a.URL, a.SSH)
	return err
}

// tunnel returns the ssh command for a browser on another machine. It uses the same port on both sides.
func (c *command) tunnel(page string) string {
	at, _ := url.Parse(page) // the URL comes from a server
	host, _ := os.Hostname()
	// The third field is the address by which this machine was reached.
	if reached := strings.Fields(c.env.Variable("SSH_CONNECTION")); len(reached) == 4 {
		host = reached[2]
	}
	if user := c.env.Variable("USER"); user != "" {
		host = user + "@" + host
	}
	return fmt.Sprintf("ssh -L %[1]s:%[2]s %[3]s", at.Port(), at.Host, cmp.Or(host, "HOST"))
}
