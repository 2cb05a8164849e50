package redact

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// scheme names how hashes are made. It is part of each key: a program that hashes in another way has another key, and is refused.
const scheme = "kuberewind hashes 1"

// FileKey is the content of a key file. Several clusters may share it; none hashes with it.
type FileKey struct{ bytes [32]byte }

// Of gives the key of the cluster with this UID. So equal values of two clusters do not show as equal.
func (k FileKey) Of(clusterUID string) Key {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write([]byte(scheme + "\x00" + clusterUID))
	return Key{[32]byte(mac.Sum(nil))}
}

// Key is the secret that the hashes of one cluster are made with.
type Key struct{ bytes [32]byte }

// Fingerprint tells keys apart and gives nothing of the key away. It is what the database holds.
func (k Key) Fingerprint() []byte {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write([]byte("kuberewind redaction key fingerprint"))
	return mac.Sum(nil)[:16]
}

// Sum tells texts apart, for one purpose, and gives nothing of them away to who has not the key.
func (k Key) Sum(purpose string, text []byte) []byte {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write([]byte("kuberewind " + purpose + "\x00"))
	mac.Write(text)
	return mac.Sum(nil)
}

// LoadKey reads the key file, 64 hexadecimal digits, and makes it when there is none. A file that others may read is
// refused: who has the key can try out values.
func LoadKey(path string) (FileKey, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(path); err != nil {
		return FileKey{}, fmt.Errorf("make redaction key %s: %w; name a place that can be written, or a key, with --redaction-key-file", path, err)
	}
	return ReadKey(path)
}

// ReadKey is LoadKey that makes nothing: where there is no file, the error is fs.ErrNotExist.
func ReadKey(path string) (FileKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return FileKey{}, fmt.Errorf("redaction key: %w; name another place with --redaction-key-file", err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return FileKey{}, fmt.Errorf("redaction key %s can be read by everyone (mode %04o); chmod o-rwx it", path, info.Mode().Perm())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return FileKey{}, fmt.Errorf("redaction key: %w", err)
	}
	raw, err := hex.DecodeString(strings.TrimSpace(string(text)))
	var key FileKey
	if err != nil || len(raw) != len(key.bytes) {
		return FileKey{}, fmt.Errorf("redaction key %s does not hold %d hexadecimal digits", path, 2*len(key.bytes))
	}
	copy(key.bytes[:], raw)
	return key, nil
}

// makeKey writes a new key whole or not at all: a torn key would make all earlier hashes worthless. A link fails
// where a rename would replace the key of another recorder that starts at the same moment.
func makeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o711); err != nil {
		return err
	}
	var key FileKey
	if _, err := rand.Read(key.bytes[:]); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".redaction-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, writeErr := tmp.WriteString(hex.EncodeToString(key.bytes[:]) + "\n")
	if err := errors.Join(writeErr, tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
