package node

import "github.com/go-menagerie/menagerie/internal/zkconn"

// Pace keeps a loop from trying again without a pause.
type Pace = zkconn.Pace
