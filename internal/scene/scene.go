package scene

import (
	_ "embed"
	"time"
)

// The users of the story.
const (
	Alice   = "alice"   // of the team of the shop
	Carol   = "carol"   // of the team of billing
	Bob     = "bob"     // runs the platform
	CD      = "cd"      // a pipeline, by kubectl
	ArgoCD  = "argocd"  // applies on the server's side, by a client of its own
	Helm    = "helm"    // writes as Helm does, by a client of its own
	Kubelet = "kubelet" // what kwok does not play
)

// Users gives the names of all users. Each may do everything.
func Users() []string { return []string{Alice, Carol, Bob, CD, ArgoCD, Helm, Kubelet} }

// Nodes is how many Nodes the story needs: node-000 and on.
const Nodes = 4

// Length is how long the story lasts at pace 1.
const Length = 10 * time.Minute

// Stages make kwok play the failures of the story.
//
//go:embed stages.yaml
var Stages string

// A Step is one deed.
type Step struct {
	At    time.Duration // since the begin, at pace 1; not before the step before has ended
	Actor string
	// Kubectl are the arguments of kubectl. Input is its standard input, or, with edit, the sed script that edits.
	Kubectl []string
	Input   string
	// Request is sent by a client that is not kubectl. Nil if there is Kubectl.
	Request *Request
	// Awaits are arguments of kubectl: each command succeeds before the step has ended.
	Awaits [][]string
}

// A Request is one write of a client that is not kubectl.
type Request struct {
	Agent   string // its user agent
	Manager string // its field manager; empty means that the server takes it from the agent
	Verb    Verb
	// Object is what is created, applied or patched, as YAML, with apiVersion, kind and metadata. A patch is merged.
	Object string
	Status bool // of the subresource
}

// A Verb is what a Request does.
type Verb string

// The verbs of requests.
const (
	Create Verb = "create"
	Apply  Verb = "apply"
	Patch  Verb = "patch"
)
