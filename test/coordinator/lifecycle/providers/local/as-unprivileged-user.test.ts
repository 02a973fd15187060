// Repeats the other tests of this directory as an unprivileged user when the suite runs as root.
import { spawnSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { isRoot } from './support.ts'

const TEST_DIR = import.meta.dirname
const UID = '54321'
const setprivArgs = [
  '--reuid',
  UID,
  '--regid',
  UID,
  '--clear-groups',
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--',
]

function getSkipReason(): string | false {
  if (!isRoot) return 'the suite already runs as an unprivileged user'
  const canRead = spawnSync('setpriv', [...setprivArgs, 'test', '-r', join(TEST_DIR, 'support.ts')])
  return canRead.status === 0 ? false : 'an unprivileged user cannot read the project directory'
}

const skip = getSkipReason()
for (const file of readdirSync(TEST_DIR).filter((name) => name.endsWith('.test.ts'))) {
  if (join(TEST_DIR, file) === import.meta.filename) continue
  t.test(`passes ${file} as an unprivileged user`, { skip }, (test) => {
    const { TAP: _tap, ...env } = process.env
    const run = spawnSync('setpriv', [...setprivArgs, process.execPath, join(TEST_DIR, file)], {
      encoding: 'utf8',
      env: { ...env, HOME: '/nonexistent', TAP: '1' },
    })
    test.equal(run.status, 0, 'the test file passes')
    if (run.status !== 0) test.comment(run.stdout + run.stderr)
    test.end()
  })
}
