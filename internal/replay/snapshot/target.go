package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	slashpath "path"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/patch"
)

// manifestName is the file that a directory or archive gets last.
const manifestName = "MANIFEST.json"

// A snapshotWriter writes objects in one format.
type snapshotWriter interface {
	begin(m *Manifest) error
	write(directory string, resource schema.GroupResource, doc patch.Doc, text []byte) error
	end(m *Manifest) error
}

// A target is the destination of a snapshot. A file gets its name when it is complete.
type target struct {
	snapshotWriter
	json bool     // if false, objects are written as YAML
	file *os.File // nil unless the output is a file
	name string   // final name of the file
}

// text returns an object in the format of the target.
func (t *target) text(doc patch.Doc) ([]byte, error) {
	if t.json {
		return render.JSON(doc), nil
	}
	return render.YAML(doc)
}

// abandon removes an incomplete file.
func (t *target) abandon() error {
	if t.file == nil {
		return nil
	}
	return errors.Join(t.file.Close(), os.Remove(t.file.Name()))
}

// end completes the snapshot.
func (t *target) end(m *Manifest) error {
	if err := t.snapshotWriter.end(m); err != nil || t.file == nil {
		return err
	}
	if err := errors.Join(t.file.Sync(), t.file.Chmod(0o600)); err != nil {
		return err
	}
	if err := os.Rename(t.file.Name(), t.name); err != nil {
		return err
	}
	file := t.file
	t.file = nil
	return file.Close()
}

// formatOf returns the format: the one that the user named, or the one of the output's name.
func formatOf(output, format string) (string, error) {
	switch format {
	case "list":
		return "yaml", nil
	case "yaml", "json", "files", "tar":
		return format, nil
	case "":
	default:
		return "", fmt.Errorf("--format %q: use one of yaml (or list), json, files, tar", format)
	}
	name := strings.ToLower(output)
	switch {
	case name == "-", strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".yml"):
		return "yaml", nil
	case strings.HasSuffix(name, ".json"):
		return "json", nil
	case strings.HasSuffix(name, ".tar"), strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".tar.zst"):
		return "tar", nil
	}
	return "files", nil
}

// newTarget opens the destination before anything is read, so that errors of it come first.
func newTarget(out io.Writer, output, format string, force bool) (*target, error) {
	format, err := formatOf(output, format)
	if err != nil {
		return nil, err
	}
	if format == "files" {
		if output == "-" {
			return nil, errors.New("--format files needs a directory: name one with -o")
		}
		writer, err := newDirectoryWriter(output, force)
		return &target{snapshotWriter: writer}, err
	}
	t := &target{name: output, json: format == "json"}
	if output != "-" {
		if info, err := os.Stat(output); err == nil && (info.IsDir() || !force) {
			return nil, fmt.Errorf("%s exists: name another file, or use --force to overwrite it", output)
		}
		if t.file, err = os.CreateTemp(filepath.Dir(output), "."+filepath.Base(output)+".*.partial"); err != nil {
			return nil, fmt.Errorf("write the snapshot: %w", err)
		}
		out = t.file
	}
	switch format {
	case "tar":
		t.snapshotWriter, err = newTarWriter(out, output)
	default:
		t.snapshotWriter = &listWriter{out: out, json: t.json}
	}
	if err != nil {
		return nil, errors.Join(err, t.abandon())
	}
	return t, nil
}

// listWriter streams a v1 List.
type listWriter struct {
	out   io.Writer
	json  bool
	items int
}

// manifestAnnotation holds the manifest of a List.
const manifestAnnotation = "kuberewind/manifest"

func (w *listWriter) begin(m *Manifest) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	quoted, err := json.Marshal(string(text))
	if err != nil {
		return err
	}
	quoted = render.JSON(quoted) // this is also valid YAML
	if w.json {
		_, err = fmt.Fprintf(w.out, `{"apiVersion":"v1","kind":"List","metadata":{"annotations":{"%s":%s}},"items":[`, manifestAnnotation, quoted)
	} else {
		_, err = fmt.Fprintf(w.out, "apiVersion: v1\nkind: List\nmetadata:\n  annotations:\n    %s: %s\nitems:", manifestAnnotation, quoted)
	}
	return err
}

func (w *listWriter) write(_ string, _ schema.GroupResource, _ patch.Doc, text []byte) error {
	w.items++
	if w.json {
		separator := ",\n"
		if w.items == 1 {
			separator = "\n"
		}
		_, err := fmt.Fprintf(w.out, "%s%s", separator, text)
		return err
	}
	indented := strings.ReplaceAll(strings.TrimSuffix(string(text), "\n"), "\n", "\n  ")
	_, err := fmt.Fprintf(w.out, "\n- %s", indented)
	return err
}

func (w *listWriter) end(*Manifest) error {
	text := "\n]}\n"
	switch {
	case w.json:
	case w.items == 0:
		text = " []\n"
	default:
		text = "\n"
	}
	_, err := io.WriteString(w.out, text)
	return err
}

// pathNames gives each object a unique path.
type pathNames struct {
	taken map[string]bool // in lower case: some file systems ignore case
}

func (n *pathNames) of(directory string, resource schema.GroupResource, doc patch.Doc) string {
	group := resource.Group
	if group == "" {
		group = "core"
	}
	parts := []string{safeName(group), safeName(resource.Resource)}
	if directory != "" {
		parts = append([]string{directory}, parts...)
	}
	if namespace := textAt(doc, "/metadata/namespace"); namespace != "" {
		parts = append(parts, safeName(namespace))
	}
	base := slashpath.Join(append(parts, safeName(textAt(doc, "/metadata/name")))...)
	name := base + ".yaml"
	for i := 2; n.taken[strings.ToLower(name)]; i++ {
		name = fmt.Sprintf("%s~%d.yaml", base, i)
	}
	n.taken[strings.ToLower(name)] = true
	return name
}

// safeName returns a name that any file system accepts, and that stays in its directory. It writes other characters as % and
// two digits.
func safeName(name string) string {
	const most = 200 // bytes; file systems allow 255
	var safe strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.' && i > 0 {
			safe.WriteByte(c)
		} else {
			fmt.Fprintf(&safe, "%%%02x", c)
		}
	}
	text := safe.String()
	if len(text) > most {
		digest := patch.Digest(patch.Doc(name))
		return fmt.Sprintf("%s~%x", text[:most], digest[:8])
	}
	return text
}

func textAt(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	text, _ := patch.Unquote(value)
	return string(text)
}

// directoryWriter writes one file per object.
type directoryWriter struct {
	names pathNames
	root  *os.Root
}

func newDirectoryWriter(directory string, force bool) (*directoryWriter, error) {
	entries, err := os.ReadDir(directory)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(directory, 0o755); err != nil {
			return nil, fmt.Errorf("write the snapshot: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("write the snapshot: %w", err)
	case len(entries) > 0 && !force:
		return nil, fmt.Errorf("%s is not empty: name another directory, or use --force to write into it", directory)
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, fmt.Errorf("write the snapshot: %w", err)
	}
	return &directoryWriter{names: pathNames{map[string]bool{}}, root: root}, nil
}

// begin removes an old manifest, because it would mark the directory as complete.
func (w *directoryWriter) begin(*Manifest) error {
	if err := w.root.Remove(manifestName); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (w *directoryWriter) write(directory string, resource schema.GroupResource, doc patch.Doc, text []byte) error {
	name := w.names.of(directory, resource, doc)
	if err := w.root.MkdirAll(slashpath.Dir(name), 0o755); err != nil {
		return err
	}
	return w.root.WriteFile(name, text, 0o600)
}

func (w *directoryWriter) end(m *Manifest) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	return errors.Join(w.root.WriteFile(manifestName, text, 0o600), w.root.Close())
}

// tarWriter writes the same files into an archive.
type tarWriter struct {
	names  pathNames
	tar    *tar.Writer
	packer io.Closer // nil without compression
	time   time.Time
}

func newTarWriter(out io.Writer, output string) (*tarWriter, error) {
	w := &tarWriter{names: pathNames{map[string]bool{}}}
	switch name := strings.ToLower(output); {
	case strings.HasSuffix(name, ".gz"), strings.HasSuffix(name, ".tgz"):
		packer := gzip.NewWriter(out)
		w.packer, out = packer, packer
	case strings.HasSuffix(name, ".zst"):
		packer, err := zstd.NewWriter(out)
		if err != nil {
			return nil, err
		}
		w.packer, out = packer, packer
	}
	w.tar = tar.NewWriter(out)
	return w, nil
}

// begin sets the time of the files to the instant, so that two archives of one snapshot have equal bytes.
func (w *tarWriter) begin(m *Manifest) error {
	w.time = m.Time.Truncate(time.Second)
	return nil
}

func (w *tarWriter) write(directory string, resource schema.GroupResource, doc patch.Doc, text []byte) error {
	return w.file(w.names.of(directory, resource, doc), text)
}

func (w *tarWriter) file(name string, text []byte) error {
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(text)), ModTime: w.time, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err := io.Copy(w.tar, bytes.NewReader(text))
	return err
}

func (w *tarWriter) end(m *Manifest) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	if err := errors.Join(w.file(manifestName, text), w.tar.Close()); err != nil || w.packer == nil {
		return err
	}
	return w.packer.Close()
}
