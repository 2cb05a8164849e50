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
	CD      = "cd"      // a pipeline that uses kubectl
	ArgoCD  = "argocd"  // applies on the server's side, with its own client
	Helm    = "helm"    // writes as Helm does, with its own client
	Kubelet = "kubelet" // writes what kwok does not simulate
)

// Users returns the names of all users. Each has all rights.
func Users() []string { return []string{Alice, Carol, Bob, CD, ArgoCD, Helm, Kubelet} }

// Nodes is how many Nodes the story needs: node-000 and so on.
const Nodes = 4

// Length is how long the story lasts at pace 1.
const Length = 10 * time.Minute

// Stages make kwok play the failures of the story.
//
//go:embed stages.yaml
var Stages string

// A Step is one action.
type Step struct {
	At    time.Duration // since the beginning, at pace 1; not before the previous step has ended
	Actor string
	// Kubectl are the arguments of kubectl. Input is its standard input or, for edit, the sed script that edits.
	Kubectl []string
	Input   string
	// Request is sent by a client that is not kubectl. It is nil if there is Kubectl.
	Request *Request
	// Awaits are arguments of kubectl. The step ends after each of these commands has succeeded.
	Awaits [][]string
}

// A Request is one write of a client that is not kubectl.
type Request struct {
	Agent   string // its user agent
	Manager string // its field manager; if empty, the server derives it from the agent
	Verb    Verb
	// Object is the created, applied or patched object, as YAML, with apiVersion, kind and metadata. A patch is merged.
	Object string
	Status bool // of the subresource
}

// A Verb is the action of a Request.
type Verb string

// The verbs of requests.
const (
	Create Verb = "create"
	Apply  Verb = "apply"
	Patch  Verb = "patch"
)
