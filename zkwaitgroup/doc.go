// Package zkwaitgroup has a [WaitGroup]: sync.WaitGroup for members of many processes, which may die.
//
// # The state
//
// Each WaitGroup has one record for each of its sessions. The record has two numbers: how many members the WaitGroup
// added, less those that it said are done; and how many others said are done. Beside the record there is an ephemeral
// node while a member of the record is not done. So if a record has members left and no such node, these members are
// dead. When there is no such node at all, the round is over. A process that finds the round over removes it, and
// writes down who died in it. See record.go for the nodes.
//
// # A change is made once
//
// One goroutine of a WaitGroup writes one transaction at a time, for all calls that came while the last one was
// under way. Each transaction changes one record, and names its version. If the answer is lost, a look at the
// record tells whether the transaction was applied, because every writer has a number of its own there, which
// nobody else writes. The next transaction names the version that this look has seen. So if the lost one is applied
// after all, the servers refuse the next one.
//
// In one case it cannot be known: a Done was refused because the record had changed, and the round was over before
// the look. Then the Done counts as made, because the servers may have refused a copy of a request that was
// applied. If it was not applied, others said that all members of that round are done while this Done was under
// way. So there was one call of Done more than members.
//
// # What cannot be left out
//
// No call may wait for ever, and no call may return too early. Four things look
// like more than is needed, but each is needed:
//
//   - A Done for a member of a session that we have lost changes the record. That session may live on for
//     a while, and with it the ephemeral node for whose end everybody waits.
//   - If a record of ours is gone, its members need not be dead: others may have said that they are done. If the next
//     calls of Done here were taken for those members, members that live would never be done. If none of the calls
//     was taken for them, a late Done of a dead member would be taken for that of a living one. So the rounds with
//     deaths are kept, and tell how many members of a record died.
//   - A record from which others took stays until the round is over. Without it they could not
//     find out whether their request was applied.
//   - A request that makes a record may wait in the queue of a server whose connection was lost. It may be applied
//     after another request has added the same members and they are done. Nothing in the request can name what it
//     depends on. So its sender looks for the record for as long as the session could be moved between servers.
//
// A quarter of the code serves four promises: a lost answer is resolved exactly (settle, look, wasMade); a
// round ends also if its records take more than one request, and one waiter reads them for all (end, remains,
// remove); dead members are told from those that others said are done (report, excuse); and a request
// that lingers adds no member for ever (linger, removeLate).
package zkwaitgroup
