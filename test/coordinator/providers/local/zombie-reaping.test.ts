// Reaping of orphaned processes by the box's init.
import { testEachLevel } from './each-level.ts'
import { startBox, waitForFileText } from './support.ts'

const script = `for i in 1 2 3 4 5; do (sh -c 'echo exited >>"$HOME/exited"' &); done
count_zombies() { cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z'; }
tries=0
while [ $tries -lt 400 ] && [ "$(cat "$HOME/exited" 2>/dev/null | wc -l) $(count_zombies)" != '5 0' ]; do
  tries=$((tries + 1))
done
echo "$(wc -l <"$HOME/exited") exited, $(count_zombies) zombies" >"$HOME/out"; mv "$HOME/out" "$HOME/counted"`

testEachLevel(
  'reaps orphaned processes when they exit',
  async (test, level) => {
    const { inHome } = await startBox(test, { level, script })
    test.equal(await waitForFileText(inHome('counted')), '5 exited, 0 zombies\n')
  },
  ['bubblewrap', 'namespaces'],
)
