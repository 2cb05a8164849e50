package record

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"
)

// A Document is a document in which the API server described itself at a path, such as /apis, from a time on.
type Document struct {
	At      time.Time
	Path    string
	Content json.RawMessage
}

// servedFile holds Documents as lines of JSON, in the order of time, compressed with zstd.
const servedFile = "served.zst"

// WriteServed writes the documents of a server into the folder of a recording.
func WriteServed(dir string, all []Document) (err error) {
	file, err := os.Create(filepath.Join(dir, servedFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	packed, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	lines := json.NewEncoder(packed)
	for _, d := range all {
		if err := lines.Encode(d); err != nil {
			return errors.Join(err, packed.Close())
		}
	}
	return packed.Close()
}

func readServed(dir string) (all []Document, err error) {
	file, err := os.Open(filepath.Join(dir, servedFile))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	plain, err := zstd.NewReader(file)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	lines := json.NewDecoder(plain)
	for {
		var d Document
		switch err := lines.Decode(&d); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, d)
	}
}
