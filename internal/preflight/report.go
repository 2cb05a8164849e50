package preflight

import (
	"log/slog"
	"strings"

	"github.com/kuberewind/kuberewind/internal/cluster"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/filter"
)

// Access reports whether a recorder could record one resource of the cluster.
type Access struct {
	Resource string `json:"resource"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail"`

	group, name string
	denied      bool // the server denies access, in contrast to a server that did not answer
}

// Report is the result of Check.
type Report struct {
	OK        bool      `json:"ok"`
	Findings  []Finding `json:"findings"`
	Resources []Access  `json:"resources,omitempty"` // by name
}

// Finding is the result of one check.
type Finding struct {
	What   string `json:"what"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	Advice string `json:"advice,omitempty"`
}

// checker runs the checks and collects their findings.
type checker struct {
	cfg      config.Config
	log      *slog.Logger
	filter   *filter.Filter
	cluster  *cluster.Cluster   // nil if it does not answer
	database *database.Database // nil if it could not be opened
	report   Report
	uid      string // the UID of the cluster, empty if it does not answer
	key      []byte // fingerprint of the redaction key on record, nil if there is none
}

// note adds a finding with the detail, or with the error. It removes the name of the check from the start of the error.
func (c *checker) note(what, detail string, err error) {
	f := Finding{What: what, OK: err == nil, Detail: detail}
	if err != nil {
		f.Detail = strings.TrimPrefix(err.Error(), what+" ")
	}
	c.add(f)
}

func (c *checker) add(f Finding) {
	c.report.OK = c.report.OK && f.OK
	c.report.Findings = append(c.report.Findings, f)
}
