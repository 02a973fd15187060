// What a box may do with user namespaces, at each isolation level: as much as any user of the host. Browsers
// and sandboxes of coding agents need user namespaces.
import { spawnSync } from 'node:child_process'
import { testEachLevel } from './each-level.ts'
import { isRoot, startBox, waitForFileText } from './support.ts'

/** Each check runs as root of a new user namespace with mount, PID and network namespaces of its own. */
const SCRIPT = `
check() {
  name=$1
  shift
  if unshare --user --map-root-user --mount --pid --fork --net -- "$@" >/dev/null 2>&1; then echo "$name=yes"; else echo "$name=no"; fi
}
{
check nested true
check mount mount -t tmpfs x /tmp
check remount-usr mount -o remount,bind,rw /usr
check write-usr touch /usr/boxwood-test
check write-sysctl sh -c 'mount -t proc proc /proc; v=$(cat /proc/sys/kernel/printk) && echo "$v" >/proc/sys/kernel/printk'
} >"$HOME/out"
mv "$HOME/out" "$HOME/results"`

function canNest(): boolean {
  const asUser = isRoot
    ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all', '--']
    : []
  const args = [
    ...asUser,
    'unshare',
    '--user',
    '--map-root-user',
    '--mount',
    '--pid',
    '--fork',
    '--net',
    'true',
  ]
  const [program = '', ...rest] = args
  return spawnSync(program, rest).status === 0
}

testEachLevel('user namespaces give a box no access to the host', async (test, level) => {
  const box = await startBox(test, { level, script: SCRIPT })
  const lines = (await waitForFileText(box.inHome('results'))).trim().split('\n')
  const results = Object.fromEntries(lines.map((line) => line.split('=')))
  const nested = canNest() ? 'yes' : 'no'
  test.match(results, {
    nested,
    mount: nested,
    'remount-usr': level === 'process' ? String : 'no',
    'write-usr': 'no',
    'write-sysctl': 'no',
  })
})
