// Repeats the test files of a directory as an unprivileged user when the suite runs as root. The user has a cgroup, as
// from systemd, where the machine has cgroups of version 2.
import { spawnSync } from 'node:child_process'
import { chownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { removeCgroups } from '../../../../../coordinator/lifecycle/providers/local/cgroups.ts'
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

/**
 * @param testFile the calling test file, which is not repeated
 * @param except the names of files that do not depend on the user, without .test.ts
 * @param part of the files, so that several test files share them: every `of`-th, from `index` on
 */
export function repeatAsUnprivilegedUser(
  testFile: string,
  except: readonly string[],
  part = { index: 0, of: 1 },
): void {
  const dir = dirname(testFile)
  const skip = getSkipReason(dir)
  const userCgroup = skip === false ? createUserCgroup() : undefined
  if (userCgroup !== undefined) t.teardown(() => removeCgroups([userCgroup]))
  const joinCgroup = userCgroup === undefined ? '' : `echo $$ >${userCgroup}/cgroup.procs && `
  const files = readdirSync(dir)
    .filter((name) => name.endsWith('.test.ts') && !name.startsWith('as-unprivileged-user'))
    .filter((name) => !except.includes(basename(name, '.test.ts')))
    .filter((_, index) => index % part.of === part.index)
  for (const file of files) {
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
        join(dir, file),
      ]
      const run = spawnSync('/bin/sh', ['-c', `${joinCgroup}exec "$@"`, 'sh', ...command], {
        encoding: 'utf8',
        env: { ...env, HOME: '/nonexistent', TAP: '1' },
      })
      test.equal(run.status, 0, 'the test file passes')
      if (run.status !== 0) test.comment(run.stdout + run.stderr)
      test.end()
    })
  }
}
