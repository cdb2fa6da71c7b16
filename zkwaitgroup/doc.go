// Package zkwaitgroup has a [WaitGroup]: sync.WaitGroup for members of many processes, which may die.
//
// # The state
//
// Each WaitGroup has one record for each of its sessions: how many members it added, less those that it said are done, and how
// many others said are done. Beside the record there is an ephemeral node while a member of it is not done. So a record
// with members left and without such a node is one of dead members, and when no such node is left the round is over. Whoever
// finds that removes the round, and writes down who died in it. See record.go for the nodes.
//
// # A change is made once
//
// One goroutine of a WaitGroup writes one transaction at a time, for all calls that came while the last one was under way. Each
// transaction changes one record, and names its version. If its answer is lost, a look at the record
// tells whether it was made, because every writer has a number of its own there, which nobody else writes. The next
// transaction goes by that look, so it is refused if the lost one is applied after all.
//
// In one case nobody can tell: a Done was refused because the record had changed, and the round was over before the look. It counts as
// made, because it may be the refusal of a copy of a request that was made. If it was not, others were done for all members
// of that round while it was under way, so there was one call of Done more than members.
//
// # What cannot be left out
//
// Nobody may wait for ever, and nobody may be let go too early. Four things look like more than is needed, and are not:
//
//   - A Done for a member of a session that we have lost changes the record. That session may live on, if it is one of a tapped
//     connection, and with it the ephemeral node for which everybody waits.
//   - A record of ours that is gone is not one of dead members: others may have said that they are done. If our next calls of
//     Done were taken for theirs, members that live would never be done. If no call was, a late Done of a dead member would be
//     taken for that of a living one. So the rounds with deaths are kept, and tell how many of a record died.
//   - A record from which others took stays until the round is over. Without it they could not find out that they did.
//   - A request that makes a record may lie in the queue of a server whose connection was lost, and be applied when its
//     members have been added by another request, and are done. Nothing in it can name what it depends on, so whoever
//     sent it looks for the record for as long as the session could be moved about.
//
// A quarter of the code serves four promises: a lost answer is resolved exactly (settle, look, wasMade: 100 lines); a round
// ends also if its records take more than one request, and one waiter reads them for all (end, remains, remove: 150 lines);
// dead members are told from those whom others ended (report, excuse: 100 lines); and a request that lingers adds
// nobody for ever (linger, removeLate: 45 lines).
package zkwaitgroup
