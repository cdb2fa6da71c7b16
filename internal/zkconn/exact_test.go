package zkconn

// Tests here assert instants: their pauses are exact.
func init() { Spread = 0 }
