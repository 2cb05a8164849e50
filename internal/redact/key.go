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

// scheme names the way in which hashes are made. It is part of each key. So a program that hashes in another way has another key, and the
// record refuses it.
const scheme = "kuberewind hashes 1"

// FileKey is the content of a key file. Several clusters may share it. No cluster hashes with it directly; see Of.
type FileKey struct{ bytes [32]byte }

// Of returns the key of the cluster with this UID. So equal values in two clusters have different hashes.
func (k FileKey) Of(clusterUID string) Key {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write([]byte(scheme + "\x00" + clusterUID))
	return Key{[32]byte(mac.Sum(nil))}
}

// Key is the secret for the hashes of one cluster.
type Key struct{ bytes [32]byte }

// Fingerprint returns a text that differs between keys and reveals nothing about the key. The database holds it.
func (k Key) Fingerprint() []byte {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write([]byte("kuberewind redaction key fingerprint"))
	return mac.Sum(nil)[:16]
}

// Sum returns a keyed hash of a text for one purpose. Without the key, it reveals nothing about the text.
func (k Key) Sum(purpose string, text []byte) []byte {
	mac := hmac.New(sha256.New, k.bytes[:])
	mac.Write([]byte("kuberewind " + purpose + "\x00"))
	mac.Write(text)
	return mac.Sum(nil)
}

// LoadKey reads the key file, 64 hexadecimal digits. If there is none, it makes one. It refuses a file that everyone can read, because a reader
// with the key can guess values.
func LoadKey(path string) (FileKey, error) {
	key, err := ReadKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	if err := makeKey(path); err != nil {
		return FileKey{}, fmt.Errorf("make redaction key %s: %w; name a writable path, or a key file, with --redaction-key-file", path, err)
	}
	return ReadKey(path)
}

// ReadKey reads the key file as LoadKey does, but makes none. If there is no file, the error is fs.ErrNotExist.
func ReadKey(path string) (FileKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return FileKey{}, fmt.Errorf("redaction key: %w; name another file with --redaction-key-file", err)
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
		return FileKey{}, fmt.Errorf("redaction key %s does not hold %d hexadecimal digits: restore the file, or name another one with --redaction-key-file", path, 2*len(key.bytes))
	}
	copy(key.bytes[:], raw)
	return key, nil
}

// makeKey writes a new key, either complete or not at all. It uses a link: if another recorder makes the key at the same moment, the link
// fails, while a rename would replace that key.
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
