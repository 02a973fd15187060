// Repeats test files as an unprivileged user when the suite runs as root. The user has a cgroup, as
// from systemd, where the machine has cgroups of version 2.
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { removeCgroups } from '../../../../coordinator/providers/local/cgroups.ts'
import { requires } from '../../../support/requires.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { isRoot } from './support.ts'

/** Test files run concurrently, and limits such as the number of processes count per user. */
const UID = String(50_000 + (process.pid % 10_000))
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

function getSkipReason(dir: string): string | false {
  if (!isRoot) return 'the suite already runs as an unprivileged user'
  const missing = requires('setpriv')
  if (missing !== false) return missing
  const canRead = spawnSync('setpriv', [...setprivArgs, 'test', '-r', join(dir, 'support.ts')])
  return canRead.status === 0 ? false : 'an unprivileged user cannot read the project directory'
}

/** The directory of a cgroup that belongs to the user; undefined without cgroups of version 2. */
function createUserCgroup(): string | undefined {
  const mount = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((line) => line.includes(' - cgroup2 '))
  const mountPoint = mount?.split(' ')[4]
  if (mountPoint === undefined) return undefined
  const dir = join(mountPoint, `boxwood-test-${process.pid}`)
  mkdirSync(dir)
  for (const path of [dir, join(dir, 'cgroup.procs')]) chownSync(path, Number(UID), Number(UID))
  return dir
}

/** Without the tests at the levels with namespaces. */
const LEVEL_PROCESS = '/^(?!.*\\(level (bubblewrap|namespaces)\\))/'

/**
 * @param dir the directory of the files
 * @param files paths without .test.ts. `process`: the behaviour at the other isolation levels does not depend on the user.
 */
export function repeatAsUnprivilegedUser(
  dir: string,
  files: Readonly<Record<string, 'all levels' | 'process'>>,
): void {
  const skip = getSkipReason(dir)
  const userCgroup = skip === false ? createUserCgroup() : undefined
  if (userCgroup !== undefined) t.teardown(() => removeCgroups([userCgroup]))
  const joinCgroup = userCgroup === undefined ? '' : `echo $$ >${userCgroup}/cgroup.procs && `
  // Else each file compiles all modules again.
  const compileCache = createTempDir(t, 'compile-cache')
  if (isRoot) chownSync(compileCache, Number(UID), Number(UID))
  for (const [file, levels] of Object.entries(files)) {
    t.test(`passes ${file} as an unprivileged user`, { skip }, (test) => {
      const { TAP: _tap, ...env } = process.env
      // tap adds NODE_OPTIONS, with which each thread writes a file that the user may not write.
      const command = [
        'env',
        '-u',
        'NODE_OPTIONS',
        'setpriv',
        ...setprivArgs,
        process.execPath,
        join(dir, `${file}.test.ts`),
      ]
      const run = spawnSync('/bin/sh', ['-c', `${joinCgroup}exec "$@"`, 'sh', ...command], {
        encoding: 'utf8',
        env: {
          ...env,
          HOME: '/nonexistent',
          TAP: '1',
          NODE_COMPILE_CACHE: compileCache,
          ...(levels === 'process' ? { TAP_GREP: LEVEL_PROCESS } : {}),
        },
      })
      test.equal(run.status, 0, 'the test file passes')
      if (run.status !== 0) test.comment(run.stdout + run.stderr)
      test.match(run.stdout, /^ok \d+ (?!.*# SKIP filter)/m, 'the filter selects tests')
      test.end()
    })
  }
}
