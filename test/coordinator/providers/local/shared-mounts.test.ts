// A coordinator of root on a machine whose mounts are shared, as systemd makes them: probes and boxes change no mount of it.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { findLevelProblem } from '../../../support/isolation-levels.ts'
import { isRoot } from './support.ts'

const FIXTURE = join(import.meta.dirname, 'fixtures/start-boxes.ts')
const SHARED = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c']

const levels = []
for (const level of ['bubblewrap', 'namespaces'] as const)
  levels.push({ level, skip: isRoot ? await findLevelProblem(level, 'own') : ('needs root' as const) })

for (const { level, skip } of levels)
  t.test(`probes and boxes keep the mounts of the machine (level ${level})`, { skip }, async (t) => {
    const [program = '', ...args] = SHARED
    const script = 'mount --make-rshared / && exec "$@"'
    const { stdout } = await promisify(execFile)(program, [
      ...args,
      script,
      'sh',
      process.execPath,
      FIXTURE,
      level,
    ])
    const { before, during, after } = JSON.parse(stdout)
    t.ok(before.length > 3, `${before.length} mounts`)
    t.same(during, before, 'while a box runs')
    t.same(after, before, 'after it is removed')
  })
