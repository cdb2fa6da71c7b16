# menagerie lock /locks/stock -- sh stock.sh
echo "UPDATE stock SET token = :'token', pieces = pieces - 2
    WHERE item = 'tea' AND token <= :'token' RETURNING pieces" |
psql -qAt -v ON_ERROR_STOP=1 -v token="$MENAGERIE_TOKEN" | grep -q . ||
    { echo "a later holder has claimed the tea" >&2; exit 1; }
