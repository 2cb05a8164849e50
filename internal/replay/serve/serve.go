package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve"
	"github.com/kuberewind/kuberewind/internal/serve/auditlog"
	"github.com/kuberewind/kuberewind/internal/serve/page"
)

const long = `Serve the clusters of the past to kubectl, k9s, informers and every other Kubernetes client, until Ctrl-C.

Each instant has its own Kubernetes API, at https://127.0.0.1:PORT/clusters/UID/at/seq:N. Clients can read it, and cannot write to it. "kubeconfig" writes a
kubeconfig for an instant; "exec" and "shell" run a program with one. They find the server by a file that only you can read.

Without --authorization, the server listens on this machine only. A client needs the token of this server, which is in the kubeconfig. Each start
makes a new token. A client must address the server by a name of this machine (127.0.0.1, localhost, [::1]) or by one of --allowed-hosts, on any port. So a
tunnel works: ssh -L 6443:127.0.0.1:PORT.

With --authorization, other users can read what the live cluster lets them read, with their credentials for that cluster. --live names the API of each live
cluster. In mode live-self, the server asks that API with the caller's own token. In mode live, it asks with the identity of the --live kubeconfig.

serve also serves a page for browsers, at http://127.0.0.1:9465: "open" opens it. The page needs a token, which it gets with the code of a link. A code works
once, within 60 seconds. serve prints a link only to a terminal. With --authorization, the page uses TLS and asks for a bearer token of the live cluster. The
owner of that token must be allowed to list all resources.

--audit-log writes one line per request, in the format of Kubernetes' audit log: the user, the request and the instant.

--intentions writes the changes that clients tried to make: one JSON line for each write, without the content of the object. The server still refuses the
write. Use it to test a controller against last night.`

const example = `  # Serve the record; in another terminal: %[1]s exec --at 10m -- k9s
  %[1]s serve

  # Always on the same port, with a log of all requests
  %[1]s serve --listen 127.0.0.1:6443 --audit-log reads.jsonl

  # Run your controller against last night, and see what it would have changed
  %[1]s serve --intentions intentions.jsonl
  %[1]s exec --at "yesterday 23:30" -- ./controller --leader-elect=false

  # Serve every user who may read the live cluster, with their own tokens
  %[1]s serve --listen 0.0.0.0:6443 --page-listen 0.0.0.0:8443 \
    --tls-cert tls.crt --tls-key tls.key --authorization live-self \
    --live 0f5c2f6e-8c1c-4d0e-9d26-5f2c1f0f9a11=live.kubeconfig`

// command is one call of serve.
type command struct {
	env          *env.Env
	listen       string
	pageListen   string
	page         bool
	allowedHosts []string
	auditLog     string
	intentions   past.Intentions
	sharing      sharing
	maxWatches   int
}

// NewCommand makes the command serve.
func NewCommand(e *env.Env) *cobra.Command {
	c := &command{env: e}
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the cluster of the past to kubectl, k9s and other clients",
		Long:    long,
		Example: fmt.Sprintf(example, e.Command),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&c.listen, "listen", past.AnyPort, "address of this machine to listen on; port 0 is any free port")
	flags.StringVar(&c.pageListen, strings.TrimPrefix(page.Flag, "--"), past.PagePort, "address of this machine for the page; if the default port is taken, any free port")
	flags.BoolVar(&c.page, "page", true, "serve the page for browsers")
	flags.StringSliceVar(&c.allowedHosts, "allowed-hosts", nil, "more host names by which clients may address the server, such as the host of a tunnel, and hosts of Headlamp's page")
	flags.StringVar(&c.auditLog, "audit-log", "", "file to which the server appends each request, as a JSON line")
	c.intentions.AddFlag(flags)
	c.sharing.flags(flags)
	flags.IntVar(&c.maxWatches, "max-watches", apiserver.DefaultMaxWatches, "maximum of open watches; the server answers 429 to more")
	return cmd
}

func (c *command) run(cmd *cobra.Command) (err error) {
	if err := c.sharing.check(); err != nil {
		return err
	}
	ownPort := cmd.Flags().Changed(strings.TrimPrefix(page.Flag, "--"))
	if ownPort && !c.page {
		return fmt.Errorf("--page=false disables the page: remove it, or remove %s", page.Flag)
	}
	front := serve.Options{Address: c.listen, AllowedHosts: c.allowedHosts, Log: c.env.Log()}
	if c.auditLog != "" {
		var log *auditlog.Log
		if log, err = auditlog.Open(c.auditLog); err != nil {
			return err
		}
		front.Audit = log
		defer func() { err = errors.Join(err, log.Close()) }()
	}
	if c.maxWatches < 1 {
		return fmt.Errorf("--max-watches %d: use a number above 0", c.maxWatches)
	}
	api := apiserver.Options{MaxWatches: c.maxWatches}
	end, err := c.intentions.Open(&api)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	o := past.Options{API: api, Front: front}
	if c.page {
		o.Page = &past.Page{Address: c.pageListen, OrAny: !ownPort}
	}
	records, err := c.env.OpenAll(cmd.Context())
	if err != nil {
		return err
	}
	return errors.Join(c.serve(cmd.Context(), cmd.Flags(), records.All, o), records.Close())
}

func (c *command) serve(ctx context.Context, flags *pflag.FlagSet, records []*history.Record, o past.Options) (err error) {
	if err := c.sharing.open(records, &o); err != nil {
		return err
	}
	server, err := past.Listen(records, o)
	if err != nil {
		return err
	}
	defer server.Close()
	for _, record := range records {
		c.env.Note(fmt.Sprintf("cluster %s is served at %s", record.Cluster().Name, server.Access().URL))
	}
	if o.Front.Shared != nil { // users have their own credentials, so no file with the server's token is needed
		return errors.Join(c.printShared(server, records), server.Serve(ctx))
	}
	remove, err := past.Publish(ctx, c.env, records, server)
	if err != nil {
		return err
	}
	if err := c.print(flags, records, server); err != nil {
		return errors.Join(err, remove())
	}
	return errors.Join(server.Serve(ctx), remove())
}

// print prints commands for another terminal, and a link to the page. It prints the link's code only to a terminal, never to
// a log.
func (c *command) print(flags *pflag.FlagSet, records []*history.Record, server *past.Server) error {
	settings := c.settings(flags)
	if len(records) > 1 {
		settings += " --cluster " + quote(records[0].Cluster().Name)
	}
	exec := c.env.Command + settings + " exec --at 10m -- "
	_, err := fmt.Fprintf(c.env.IOStreams.Out, "%skubectl get pods -A\n%sk9s\nkill %d\n%s", exec, exec, os.Getpid(), c.pageLine(server, settings))
	return err
}

// pageLine returns a line about the page, "" without a page.
func (c *command) pageLine(server *past.Server, settings string) string {
	open := c.env.Command + settings + " open"
	switch {
	case server.Page() == "":
		return ""
	case !c.env.Terminal():
		c.env.Note("to open the page below, use: " + open)
		return server.Page() + "\n"
	}
	c.env.Note(fmt.Sprintf("the link below opens the page once, within %s; later, use: %s", page.Lifetime, open))
	link, _ := server.Link()
	return link.URL(past.Focus{}) + "\n"
}

// settings returns the flags that selected the record, without a password.
func (c *command) settings(flags *pflag.FlagSet) string {
	var given strings.Builder
	for _, name := range []string{"config", "database", "data-dir", "cluster"} {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		value := flag.Value.String()
		if masked := config.MaskURL(value); name == "database" && masked != value {
			c.env.Note("the lines below do not have the password of --database: set PGPASSFILE or REPLAY_DATABASE in the other terminal")
			value = masked
		}
		fmt.Fprintf(&given, " --%s %s", name, quote(value))
	}
	return given.String()
}

// quote quotes a value as one word of a shell.
func quote(value string) string { return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'" }

// printShared prints a command for each cluster whose users may read.
func (c *command) printShared(server *past.Server, records []*history.Record) error {
	for _, record := range records {
		uid := record.Cluster().UID
		if c.sharing.configs[uid] == nil {
			c.env.Note(fmt.Sprintf("no user can read cluster %s: name its live API with --live", record.Cluster().Name))
			continue
		}
		_, err := fmt.Fprintf(c.env.IOStreams.Out, "%s kubeconfig --own-credentials --server %s/clusters/%s --at 10m -o past.kubeconfig\n", c.env.Command, server.Access().URL, uid)
		if err != nil {
			return err
		}
	}
	pageLine := server.Page()
	if pageLine != "" {
		pageLine += "\n"
	}
	_, err := fmt.Fprintf(c.env.IOStreams.Out, "kill %d\n%s", os.Getpid(), pageLine)
	return err
}
