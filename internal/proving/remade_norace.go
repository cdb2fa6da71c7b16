//go:build !race

package proving

// Remade says whether tests may have a tapped connection made anew: see the other file.
const Remade = true
