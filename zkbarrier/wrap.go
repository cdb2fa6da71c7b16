package zkbarrier

import (
	"errors"

	"github.com/go-menagerie/menagerie/zksync"
)

func wrap(op, path string, err error) error {
	var named *zksync.Error
	if err == nil || errors.As(err, &named) {
		return err
	}
	return &zksync.Error{Op: op, Path: path, Err: err}
}
