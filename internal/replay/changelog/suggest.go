package changelog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/internal/replay/known"
)

// suggest says of words that led to nothing what was perhaps meant.
func (w *logWriter) suggest(ctx context.Context) error {
	if err := w.env.NoteNamespace(ctx, w.rec, w.namespace); err != nil {
		return err
	}
	for _, path := range w.paths {
		if like := known.Suggest(path, w.fold.Paths()); like != "" && like != path {
			w.env.Note(fmt.Sprintf("no version that was read has --path %q; did you mean %s?", path, like))
		}
	}
	if len(w.managers) == 0 {
		return nil
	}
	managers, err := known.Managers(ctx, w.rec.Record, 0)
	if err != nil {
		return err
	}
	for _, manager := range w.managers {
		like := known.Suggest(manager, managers)
		if like != "" && !strings.ContainsAny(manager, "*?[") && !slices.Contains(managers, manager) {
			w.env.Note(fmt.Sprintf("no recent version has --manager %q; did you mean %s?", manager, like))
		}
	}
	return nil
}
