#!/bin/sh
# One of several workers of a batch, on any machine. They begin together, work on the items of a file, and end together:
#
#     worker.sh BATCH NAME WORKERS ITEMS CMD ARGS...
#
# BATCH is a path that no other batch has, such as /batches/2026-11-27. NAME is the worker's own. CMD gets an item in MENAGERIE_VALUE.
# An item of which CMD fails comes again.
# If a worker dies, start it again with the same NAME:
#
#     until ./worker.sh /batches/7 w3 20 items ./invoice.sh; do sleep 1; done
set -eu
batch=$1 name=$2 workers=$3 items=$4
shift 4

# All commands ask for the same session timeout: what a dead worker held is free after it.
timeout=5s

# Worker NAME has come to a point of the batch; go on when all have. The latch stays open, so a worker that comes back passes at once. The once counts
# it once, unless the worker dies just after the count. A barrier would not do: a late worker waits there alone, for a round that does not come.
meet() {
	menagerie once "$batch/$1/$name" --timeout $timeout -- menagerie latch down "$batch/$1-latch" --count "$workers"
	menagerie latch wait "$batch/$1-latch" --count "$workers" --wait 10m --timeout $timeout
}

meet begin

# One of them puts the items into the queue. If it dies, another one begins again, so some items may be there twice.
menagerie once "$batch/filled" --timeout $timeout -- \
	sh -eu -c 'while IFS= read -r item || [ -n "$item" ]; do menagerie queue put "$0" -- "$item"; done <"$1"' "$batch/items" "$items"

# Until the queue is empty: an item stays there until a worker has done it. Code 75 alone does not say so: perhaps no server could be reached, or CMD
# has ended with it.
while :; do
	code=0
	menagerie queue receive "$batch/items" --wait 8s --timeout $timeout -- "$@" || code=$?
	case $code in
	0) continue ;;
	75) ;;
	*) echo "$name: exit code $code, the item comes again" ;;
	esac
	case $(menagerie ls --json "$batch/items" 2>&1) in *'"count": 0,'* | *"does not exist"*) break ;; esac
	sleep 1
done

meet end
echo "$name: done"
