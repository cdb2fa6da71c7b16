// Package demo lets several operating-system processes increment one unprotected file under
// one lock, and judges afterwards whether the lock did its work.
//
// Nothing but the lock keeps the processes apart: each reads the file, computes and writes
// it back, so two that are inside at once lose an increment. Each also notes in a journal
// when it enters and leaves, and with which token. The verdict follows from file and
// journal alone.
//
// A process may be killed at any moment. What it has done is in the file, so the process
// that replaces it carries on from there.
package demo
