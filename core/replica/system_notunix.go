//go:build !unix

package replica

import (
	"fmt"
	"os"
	"path/filepath"
)

// lockDir only marks the data folder here: nothing keeps a second process out.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	return file, nil
}
