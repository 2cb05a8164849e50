package replay

import (
	"errors"
	"strings"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/terminal"
	"github.com/kuberewind/kuberewind/migrations"
)

// message formats an error like kubectl, because scripts and users know "Error from server (NotFound): …" and "error: …".
func message(err error) string {
	text := ""
	for _, each := range flatten(err) {
		text += line(each)
	}
	return text
}

func line(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		if text, ok := cmdutil.StandardErrorMessage(inner); ok {
			return render.Short(render.Terminal(strings.TrimSpace(text))) + "\n"
		}
	}
	text := "error: " + strings.TrimPrefix(strings.TrimSpace(config.Plain(err).Error()), "error: ")
	if advice := advise(err); advice != "" {
		text += " (" + advice + ")"
	}
	return render.Short(render.Terminal(text)) + "\n"
}

// coloured colours the beginning of each error.
func coloured(text string, style terminal.Style) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		head, rest, ok := strings.Cut(line, ": ")
		if ok && (strings.HasPrefix(head, "error") || strings.HasPrefix(head, "Error")) {
			lines[i] = style.Error(head+":") + " " + rest
		}
	}
	return strings.Join(lines, "")
}

// advise returns how to fix an error of the database, "" if that is not known.
func advise(err error) string {
	var refusal *pgconn.PgError
	switch {
	case errors.Is(err, migrations.ErrNoRights): // The error contains the advice.
	case errors.As(err, &refusal):
		switch refusal.Code {
		case pgerrcode.InsufficientPrivilege:
			return "this login may not read the record; the record's owner can allow it: GRANT kuberewind_auditor TO the login"
		case pgerrcode.InvalidPassword, pgerrcode.InvalidAuthorizationSpecification:
			return "check the user and the password in --database"
		case pgerrcode.InvalidCatalogName:
			return "name another database with --database"
		}
	case errors.As(err, new(*pgconn.ConnectError)):
		return "does PostgreSQL run there? set its address with --database"
	}
	return ""
}

// flatten returns the parts of a joined error, or the error itself.
func flatten(err error) []error {
	var parts []error
	switch several := err.(type) { //nolint:errorlint // An error that wraps several errors counts as one.
	case utilerrors.Aggregate:
		parts = several.Errors()
	case interface{ Unwrap() []error }:
		parts = several.Unwrap()
	default:
		return []error{err}
	}
	var all []error
	for _, part := range parts {
		all = append(all, flatten(part)...)
	}
	return all
}
