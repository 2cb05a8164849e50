package embedded

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// passFile is the path of the file with the superuser's password.
type passFile string

// ensure returns the superuser's password. The first call makes it. The file has the format that libpq reads.
func (f passFile) ensure() (string, error) {
	password, err := f.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return password, err
	}
	random := make([]byte, 24)
	_, _ = rand.Read(random) // never fails
	password = hex.EncodeToString(random)
	return password, writeNew(string(f), []byte("*:*:*:"+superuser+":"+password+"\n"))
}

func (f passFile) read() (string, error) {
	text, err := os.ReadFile(string(f))
	if err != nil {
		return "", explainPath("read the password file", string(f), err)
	}
	fields := bytes.SplitN(bytes.TrimSpace(text), []byte(":"), 5)
	if len(fields) != 5 || len(fields[4]) == 0 {
		return "", fmt.Errorf("the password file %s has no line *:*:*:%s:PASSWORD", f, superuser)
	}
	return string(fields[4]), nil
}

// writeNew writes a file that only the user can read, either complete or not at all.
func writeNew(path string, text []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return explainPath("write", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(explainPath("write", path, err), os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
