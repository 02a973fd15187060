// Mounts of the host below a system directory are read-only in a box, and the probe of an isolation level checks this.
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { CHECK_MOUNTS, DEFINE_FAIL } from '../../../../coordinator/providers/local/levels/choose-level.ts'
import { requires } from '../../../support/requires.ts'
import { isRoot } from './support.ts'

const FIXTURE = new URL('fixtures/start-and-print.ts', import.meta.url).pathname
const DATA_DIR = '/usr/share/data'

/** Runs in mount namespaces of its own, so that the host and other tests do not have these mounts. */
const MOUNT_SCRIPT = `set -e
mount -t tmpfs boxwood-test /usr/share
mkdir /usr/share/volume '/usr/share/a b'
mount -t tmpfs -o mode=1777 boxwood-test /usr/share/volume
mount -t tmpfs -o mode=1777 boxwood-test '/usr/share/a b'
mkdir -m 711 ${DATA_DIR}
mkdir ${DATA_DIR}/covered
mount -t tmpfs boxwood-test ${DATA_DIR}/covered
exec "$@"`

const BOX_SCRIPT = `
for path in /usr/share/volume '/usr/share/a b' /tmp; do
  if touch "$path/x" 2>/dev/null; then echo "$path is writable"; else echo "$path is read-only"; fi
done >"$HOME/out"
while read -r _ _ _ _ path flags _; do
  case $path in /usr/share* | /tmp | /home/box) [ ! -e "$path" ] || echo "$path $flags" ;; esac
done </proc/self/mountinfo >>"$HOME/out"
mv "$HOME/out" "$HOME/results"`

const [uid, gid] = [process.getuid?.(), process.getgid?.()]
/** Prefixes of a command that may mount, and of a command with the user of this process. */
const mounter = ['unshare', ...(isRoot ? [] : ['--user', '--map-root-user']), '--mount', '--']
const sameUser = isRoot ? [] : ['unshare', '--user', `--map-user=${uid}`, `--map-group=${gid}`, '--']

function run([program = '', ...args]: string[]) {
  return spawnSync(program, args, { encoding: 'utf8' })
}

/** Does not use the probe of the level, which would skip a level whose mounts are writable. */
const requirement = [...mounter, ...sameUser, 'true']
const cannotMount = run(requirement).status !== 0 && `${requirement.join(' ')} does not work`

for (const [level, skip] of [
  ['bubblewrap', requires('bwrap') || cannotMount],
  ['namespaces', cannotMount],
] as const) {
  t.test(`keeps mounts below system directories read-only (level ${level})`, { skip }, async (test) => {
    const fixture = [...sameUser, process.execPath, FIXTURE, DATA_DIR, level, BOX_SCRIPT]
    const { status, stdout, stderr } = run([...mounter, 'sh', '-c', MOUNT_SCRIPT, 'sh', ...fixture])
    test.equal(status, 0, stderr)
    const lines = stdout.trim().split('\n')
    test.same(lines.slice(0, 3), [
      '/usr/share/volume is read-only',
      '/usr/share/a b is read-only',
      '/tmp is writable',
    ])
    const mounts = lines.slice(3)
    test.ok(mounts.length >= 4, 'the box has the mounts of the host')
    for (const mount of mounts) {
      test.match(mount, /[ ,]nosuid(,|$)/)
      test.match(mount, /[ ,]nodev(,|$)/)
    }
  })
}

t.test('the probe rejects a view with a writable mount', async (test) => {
  const check = spawnSync('sh', ['-c', `${DEFINE_FAIL}\n${CHECK_MOUNTS}`], { encoding: 'utf8' })
  test.equal(check.status, 1)
  test.match(check.stderr, / is not mounted with (ro|nosuid|nodev)\n$/)
})
