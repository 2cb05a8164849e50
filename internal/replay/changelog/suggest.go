package changelog

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/kuberewind/kuberewind/internal/mistyped"
	"github.com/kuberewind/kuberewind/internal/replay/known"
)

// suggest prints notes about namespaces, paths, labels and managers that match nothing, with similar names.
func (w *logWriter) suggest(ctx context.Context) error {
	if err := w.env.NoteNamespace(ctx, w.rec, w.namespace); err != nil {
		return err
	}
	for _, wanted := range w.paths {
		w.env.Note(w.fold.Seen.Hint(wanted))
	}
	for _, text := range w.fold.UnknownLabels() {
		w.env.Note(text)
	}
	if len(w.managers) == 0 {
		return nil
	}
	managers, err := known.Managers(ctx, w.rec.Record, 0)
	if err != nil {
		return err
	}
	for _, manager := range w.managers {
		if slices.ContainsFunc(managers, func(name string) bool { matched, _ := path.Match(manager, name); return matched }) {
			continue
		}
		text := fmt.Sprintf("no recent version has --manager %q", manager)
		if like := mistyped.Suggest(manager, managers); like != "" {
			text += fmt.Sprintf("; did you mean %s?", like)
		}
		w.env.Note(text)
	}
	return nil
}
