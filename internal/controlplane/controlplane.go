package controlplane

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
)

// Options say what control plane is wanted. The zero value is one of everything in a folder that goes with it.
type Options struct {
	// Dir is the folder for everything that the control plane writes. It is kept, and started in again it gives the same
	// cluster at new addresses. Empty means a new one under the system's temporary folder, removed by Stop.
	Dir string
	// EtcdArgs are added to etcd's command line. A flag given twice has its last value.
	EtcdArgs []string
	// APIServer is about the first API server.
	APIServer APIServerOptions
	// Users may show a token to the API servers, besides AdminName.
	Users []User
}

// ControlPlane is one etcd, one or more API servers on it, and perhaps workload controllers.
type ControlPlane struct {
	Etcd      *Etcd
	APIServer *APIServer // the first one

	binaries     string
	home         *home
	certificates *certificates
	tokenFile    string
	users        map[string]User

	mu         sync.Mutex // guards components and stopped
	components []*Component
	stopped    bool
}

// Start starts a control plane and returns when it serves. ctx bounds the start only; Stop ends the control plane. The
// error wraps binaries.ErrMissing, and names the make target, if the programs have not been built.
func Start(ctx context.Context, options Options) (*ControlPlane, error) {
	programs, err := binaries.Find(binaries.Minimal...)
	if err != nil {
		return nil, err
	}
	users, err := newUsers(options.Users)
	if err != nil {
		return nil, err
	}
	home, err := newHome(options.Dir)
	if err != nil {
		return nil, err
	}
	plane := &ControlPlane{binaries: programs, home: home, users: users}
	if err := plane.start(ctx, options); err != nil {
		return nil, errors.Join(err, plane.stop(context.WithoutCancel(ctx)))
	}
	return plane, nil
}

func (p *ControlPlane) start(ctx context.Context, options Options) error {
	var err error
	if p.certificates, err = newCertificates(p.home.dir); err != nil {
		return err
	}
	p.tokenFile = filepath.Join(p.home.dir, "tokens.csv")
	if err := writeTokenFile(p.tokenFile, p.users); err != nil {
		return err
	}
	p.Etcd = newEtcd(p.home.dir, p.program(binaries.Etcd), options.EtcdArgs)
	if err := p.own(p.Etcd.Component); err != nil {
		return err
	}
	if err := p.Etcd.start(ctx); err != nil {
		return err
	}
	p.APIServer, err = p.StartAPIServer(ctx, options.APIServer)
	return err
}

// StartAPIServer starts one more API server on the same etcd, for the same users. One with --watch-cache=false reads
// etcd for every answer.
func (p *ControlPlane) StartAPIServer(ctx context.Context, options APIServerOptions) (*APIServer, error) {
	name := binaries.APIServer
	if p.APIServer != nil {
		name = fmt.Sprintf("%s-%d", name, p.count())
	}
	server := newAPIServer(p, name, p.program(binaries.APIServer), options)
	if err := p.own(server.Component); err != nil {
		return nil, err
	}
	return server, server.Start(ctx)
}

// Config returns a client configuration of the administrator for the first API server.
func (p *ControlPlane) Config() *rest.Config {
	// The administrator is known: there is no error to return.
	config, _ := p.APIServer.Config(AdminName)
	return config
}

// Kubeconfig returns the path of a kubeconfig of the administrator for the first API server.
func (p *ControlPlane) Kubeconfig() (string, error) { return p.APIServer.Kubeconfig(AdminName) }

// Kubectl returns the path of the kubectl program.
func (p *ControlPlane) Kubectl() string { return p.program(binaries.Kubectl) }

// Dir returns the folder that holds the logs and the data.
func (p *ControlPlane) Dir() string { return p.home.dir }

// Logs returns the last lines of each component's log.
func (p *ControlPlane) Logs(lines int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	for _, component := range p.components {
		fmt.Fprintf(&text, "--- %s\n%s\n", component.name, component.Log(lines))
	}
	return text.String()
}

// Stop ends everything, clients of a component before the component, and removes the folder unless Options named it.
// When it returns, no process is left. It may be called again.
func (p *ControlPlane) Stop() error { return p.stop(context.Background()) }

func (p *ControlPlane) stop(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil
	}
	p.stopped = true
	var failures []error
	for _, component := range slices.Backward(p.components) {
		failures = append(failures, p.stopComponent(ctx, component))
	}
	return errors.Join(append(failures, p.home.close())...)
}

// stopComponent lets a component shut down by itself only if its data will be used again.
func (p *ControlPlane) stopComponent(ctx context.Context, component *Component) error {
	if p.home.temporary {
		return component.Kill()
	}
	return component.Stop(ctx)
}

// own makes Stop end the components, later ones first.
func (p *ControlPlane) own(components ...*Component) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return errors.New("the control plane has been stopped")
	}
	p.components = append(p.components, components...)
	return nil
}

func (p *ControlPlane) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.components)
}

func (p *ControlPlane) program(name string) string { return filepath.Join(p.binaries, name) }

func (p *ControlPlane) user(name string) (User, error) {
	user, known := p.users[name]
	if !known {
		return User{}, fmt.Errorf("the control plane was started without a user %q", name)
	}
	return user, nil
}
