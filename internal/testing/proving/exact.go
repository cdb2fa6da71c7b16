package proving

import "github.com/go-menagerie/menagerie/internal/zkconn"

// Tests of recipes assert instants, and are played again from a seed: their pauses are exact.
func init() { zkconn.Spread = 0 }
