// What a command leaves behind is reaped when it ends: a box does not fill up with zombies.
import { eachLevel, readWhenThere, startBox } from './support.ts'

const script = `for i in 1 2 3 4 5; do (sh -c 'echo ended >>"$HOME/ended"' &); done
zombies() { cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z'; }
tries=0
while [ $tries -lt 400 ] && [ "$(cat "$HOME/ended" 2>/dev/null | wc -l) $(zombies)" != '5 0' ]; do
  tries=$((tries + 1))
done
echo "$(wc -l <"$HOME/ended") ended, $(zombies) zombies" >"$HOME/out"; mv "$HOME/out" "$HOME/counted"`

eachLevel(['bubblewrap', 'namespaces'], async (test, level) => {
  const { inHome } = await startBox(test, { level, script })
  test.equal(await readWhenThere(inHome('counted')), '5 ended, 0 zombies\n')
})
