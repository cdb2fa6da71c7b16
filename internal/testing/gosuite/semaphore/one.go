//go:build !three

package semaphore

import (
	"github.com/go-menagerie/menagerie/internal/testing/gosuite/play"
	"github.com/go-menagerie/menagerie/zksemaphore"
)

// Weighted is the type that users have.
type Weighted = zksemaphore.Weighted

// NewWeighted gives the semaphore a path.
func NewWeighted(n int64) *Weighted { return zksemaphore.NewWeighted(play.Session(0), play.Path(), n) }
