// sudo and the package managers of the machine explain in a box without root access what to use instead.
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { adviseRoot } from '../../../../coordinator/providers/local/open-host.ts'
import { loadConfig } from '../../../../coordinator/server/config.ts'
import { findProgram, requires } from '../../../support/requires.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { testEachLevel } from '../local/each-level.ts'
import { isRoot, openHost, projectRoot, startBox, waitForFileText } from '../local/support.ts'

const EXPLANATION =
  /^sudo does not work in this box: .*no root access.*\n.*root access.*\n.*npm install -g.*`box docs software` on your own machine\)\.\n$/

testEachLevel('sudo explains what works, also in a login shell', async (test, level) => {
  const script = `cd "$HOME"; { sudo true; echo "$?"; } >command.out 2>&1; sh -lc 'sudo true' >login.out 2>&1
    command -v sudo >path.out; mv command.out command; mv login.out login; mv path.out path`
  const { inHome } = await startBox(test, { level, script })
  const path = await waitForFileText(inHome('path'))
  if (level === 'process' && !isRoot) {
    test.notMatch(path, /needs-root/, 'the user may be allowed to use sudo')
    return
  }
  test.match(path, /\/needs-root\/sudo\n$/)
  test.match((await waitForFileText(inHome('command'))).replace(/1\n$/, ''), EXPLANATION)
  test.match(await waitForFileText(inHome('login')), EXPLANATION)
})

testEachLevel('the package manager of the machine explains what works', async (test, level) => {
  const manager = (['apt-get', 'dnf', 'yum', 'apk'] as const).find(findProgram)
  if (manager === undefined) {
    test.pass('a package manager', { skip: 'no package manager is installed' })
    return
  }
  const script = `cd "$HOME"; ${manager} ${manager === 'apk' ? 'add' : 'install'} hello >out 2>&1; mv out result`
  const { inHome } = await startBox(test, { level, script })
  const output = await waitForFileText(inHome('result'))
  if (level === 'process' && !isRoot) test.notMatch(output, /in this box/)
  else test.match(output, new RegExp(`^${manager} (install|add) does not work in this box: `))
})

testEachLevel('a box that runs gets the advice of the next start of the coordinator', async (test, level) => {
  const script = `while [ ! -e "$HOME/restarted" ]; do sleep 0.1; done
    cd "$HOME"; sudo true >out 2>&1; mv out result`
  const { inHome, dataDir } = await startBox(test, { level, script, rootAdvice: 'the first advice' })
  const host = await openHost(dataDir, { level, script, rootAdvice: 'the second advice' })
  test.teardown(() => host.close())
  writeFileSync(inHome('restarted'), '')
  const [, advice] = (await waitForFileText(inHome('result'))).split('\n')
  if (level !== 'process' || isRoot) test.equal(advice, 'the second advice')
})

t.test('the advice is a command where a region has images, else what the operator starts', async (t) => {
  const advise = (env: Record<string, string>) =>
    adviseRoot(loadConfig({ BOXWOOD_DATA: createTempDir(t, 'advice'), ...env }))
  t.match(
    advise({}),
    /operator .*BOXWOOD_REGIONS=us-west-2=local,us-east-1=docker npm start; then .*: box create --image debian:12$/,
  )
  t.match(
    advise({ BOXWOOD_REGIONS: 'us-west-2=local,us-east-1=podman', BOXWOOD_DEFAULT_IMAGE: 'ubuntu:24.04' }),
    /: box create --image ubuntu:24\.04$/,
  )
})

/** Runs the script as the program of this name. */
function createProgram(t: Test) {
  const dir = createTempDir(t, 'needs-root')
  chmodSync(dir, 0o755)
  return (name: string, ...args: string[]) => {
    mkdirSync(dir, { recursive: true })
    const file = join(dir, name)
    copyFileSync(join(projectRoot, 'agent/init/needs-root.sh'), file)
    chmodSync(file, 0o755)
    const user = isRoot ? { uid: 65534, gid: 65534 } : {}
    return spawnSync(file, args, { encoding: 'utf8', ...user })
  }
}

t.test('refuses the subcommands that need root access, with options before them', (t) => {
  const run = createProgram(t)
  for (const args of [
    ['update'],
    ['-y', 'install', 'hello'],
    ['-qq', '-o', 'Dpkg::Options::=--force-confold', 'install', 'hello'],
    ['-t', 'stable', 'upgrade'],
  ]) {
    const { status, stdout, stderr } = run('apt-get', ...args)
    t.match(
      { status, stdout, stderr },
      { status: 1, stdout: '', stderr: /^apt-get \w+ does not work in this box/ },
    )
  }
  t.match(run('dnf', 'install', '-y', 'hello'), { status: 1, stderr: /^dnf install does not work/ })
  t.match(run('apk', 'add', 'hello'), { status: 1, stderr: /^apk add does not work/ })
  t.match(run('sudo', 'true'), { status: 1, stdout: '', stderr: EXPLANATION })
  t.end()
})

t.test('runs the program for what works without root access', { skip: requires('apt-get') }, (t) => {
  const run = createProgram(t)
  for (const args of [
    ['--version'],
    ['help', 'install'],
    ['-o', 'Dir=/nonexistent', '--version'],
    ['-s', '--version', 'install'],
  ])
    t.match(run('apt-get', ...args), { status: 0, stdout: /^apt /, stderr: '' }, args.join(' '))
  t.end()
})
