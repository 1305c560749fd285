# Keeps one server for one test process, and outlives that process just long enough to clean up after it.
#
#   supervisor FOLDER SIGNAL COMMAND...
#
# The test process holds the other end of standard input and writes one word a line; each is answered with one line.
# When it ends, in whatever way, reading ends too: the server is ended with SIGNAL and the folder is removed.
#
# It must come to its end: the system says HUP when the test process leaves a paused server behind, and PIPE when
# nobody is there to hear an answer.
trap '' HUP INT TERM PIPE
folder=$1 signal=$2
shift 2
cd "$folder" || exit 1
server=

family() { # the server and its children, if the system tells
  printf '%s ' "$server"
  cat "/proc/$server/task/$server/children" 2>/dev/null
}

to_family() { # to_family SIGNAL; the list is meant to split
  [ -z "$server" ] || kill -s "$1" $(family) 2>/dev/null
}

murder() {
  [ -n "$server" ] || return 0
  kill -s STOP "$server" 2>/dev/null # from here on it has no more children
  to_family KILL
  to_family KILL # a child that was on its way
  wait "$server" 2>/dev/null
  server=
}

end() {
  if [ -n "$server" ] && [ "$signal" != KILL ]; then
    to_family CONT
    kill -s "$signal" "$server" 2>/dev/null
    wait "$server" 2>/dev/null
  else
    murder
  fi
}

while read -r word; do
  case $word in
    start)
      murder
      "$@" >>log 2>&1 </dev/null &
      server=$!
      echo "$server"
      ;;
    kill) murder && echo killed ;;
    pause) to_family STOP; to_family STOP; echo paused ;;
    resume) to_family CONT; echo resumed ;;
  esac
done

end
# A killed PostgreSQL leaves a segment of shared memory, which marks its data as taken; its lock file names it.
[ -f data/postmaster.pid ] && ipcrm -m "$(sed -n '7s/.* //p' data/postmaster.pid)" 2>/dev/null
cd / && rm -rf -- "$folder"
