package bench

import "github.com/go-menagerie/menagerie/internal/zkconn"

// Tests here assert instants: their pauses are exact.
func init() { zkconn.Spread = 0 }
