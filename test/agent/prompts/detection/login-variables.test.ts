// The environment of coding agents is that of a login shell, whatever the profile of the user does.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { isAlive } from '../../exec/support.ts'
import { createTestBox } from './support.ts'

t.test('PATH and exported variables are those of ~/.profile', async (t) => {
  const box = createTestBox(t)
  box.profile('export GREETING="two words\nand a line"', 'UNEXPORTED=1', 'export CLAUDE_KEY=k')
  box.program('claude', 'echo "2.1.0 (Fake)"')
  const { resolve } = await box.detect()
  const { path, version, env } = await resolve('claude')
  t.equal(path, join(box.home, 'bin/claude'))
  t.equal(version, '2.1.0')
  t.match(env, { GREETING: 'two words\nand a line', BASE: 'of the base environment', HOME: box.home })
  t.ok(env.PATH?.startsWith(`${box.home}/bin:`))
  t.ok(env.PATH?.endsWith(`:${box.home}/.local/bin`), 'programs that npm installs are found')
  for (const name of ['UNEXPORTED', 'SHLVL', 'PWD', 'BOXWOOD_PROCESS_ID']) t.notOk(name in env, name)
})

t.test('the variables of the box override those of the login shell', async (t) => {
  const box = createTestBox(t)
  box.profile('export COLOR=profile')
  box.program('claude', 'echo 1.0')
  const { resolve } = await box.detect()
  const { env } = await resolve('claude', { COLOR: 'box', CLAUDE_KEY: 'k' })
  t.match(env, { COLOR: 'box', CLAUDE_KEY: 'k' })
})

t.test('bash reads its own profile, and its exported functions are left out', async (t) => {
  const box = createTestBox(t, { shell: '/bin/bash' })
  box.write(
    '.bash_profile',
    'f() { echo f; }\nexport -f f\nexport FROM=bash_profile CLAUDE_KEY=k PATH=$HOME/bin:$PATH\n',
  )
  box.program('claude', 'echo 1.0')
  const { resolve } = await box.detect()
  const { env } = await resolve('claude')
  t.equal(env.FROM, 'bash_profile')
  t.same(
    Object.keys(env).filter((name) => !/^\w+$/.test(name)),
    [],
  )
})

t.test('a change of the profile counts for the next prompt', async (t) => {
  const box = createTestBox(t)
  box.profile('export CLAUDE_KEY=first', 'echo >>$HOME/shells')
  box.program('claude', 'echo 1.0')
  const { resolve } = await box.detect({ startDelayMs: 1e6 })
  await Promise.all([resolve('claude'), resolve('claude')])
  t.equal((await resolve('claude')).env.CLAUDE_KEY, 'first')
  t.equal(readFileSync(join(box.home, 'shells'), 'utf8'), '\n', 'one login shell for all of them')
  box.profile('export CLAUDE_KEY=second')
  t.equal((await resolve('claude')).env.CLAUDE_KEY, 'second')
})

t.test('the environment is read again after an hour, without a delay for the prompt', async (t) => {
  const box = createTestBox(t)
  box.write('other', 'first')
  box.profile('export CLAUDE_KEY=$(cat $HOME/other)')
  box.program('claude', 'echo 1.0')
  let now = 0
  const { resolve } = await box.detect({ clock: { now: () => now }, startDelayMs: 1e6 })
  t.equal((await resolve('claude')).env.CLAUDE_KEY, 'first')
  box.write('other', 'second')
  t.equal((await resolve('claude')).env.CLAUDE_KEY, 'first', 'changes of other files are not noticed')
  now += 2 * 60 * 60_000
  t.equal((await resolve('claude')).env.CLAUDE_KEY, 'first')
  await waitUntil('the new value is used', async () => (await resolve('claude')).env.CLAUDE_KEY === 'second')
})

t.test('a profile that prints does not disturb', async (t) => {
  const box = createTestBox(t)
  box.profile('echo A=b', 'echo error >&2', 'head -c 3000000 /dev/zero', 'export CLAUDE_KEY=k')
  box.program('claude', 'echo 1.0')
  const { resolve } = await box.detect()
  const { env } = await resolve('claude')
  t.equal(env.CLAUDE_KEY, 'k')
  t.notOk('A' in env)
})

t.test('background processes of a profile neither delay the prompt nor are terminated', async (t) => {
  const box = createTestBox(t)
  box.profile('sleep 1000 &', 'echo $! >$HOME/background', 'export CLAUDE_KEY=k')
  box.program('claude', 'echo 1.0')
  const { resolve } = await box.detect({ startDelayMs: 1e6 })
  t.equal((await resolve('claude')).env.CLAUDE_KEY, 'k')
  const pid = Number(readFileSync(join(box.home, 'background'), 'utf8'))
  t.teardown(() => process.kill(pid))
  t.ok(isAlive(pid))
})

t.test('a profile that hangs is terminated, and the base environment is used', async (t) => {
  const box = createTestBox(t)
  box.profile('echo $$ >$HOME/shell', 'export NEVER=1', 'while :; do sleep 1; done')
  box.program('claude', 'echo 1.0', '.local/bin')
  const { resolve } = await box.detect({ loginTimeoutMs: 300, startDelayMs: 1e6 })
  const { path, env } = await resolve('claude', { CLAUDE_KEY: 'k' })
  t.equal(path, join(box.home, '.local/bin/claude'))
  t.equal(env.PATH, `/usr/local/bin:/usr/bin:/bin:${box.home}/.local/bin`)
  t.notOk('NEVER' in env)
  const pid = Number(readFileSync(join(box.home, 'shell'), 'utf8'))
  t.notOk(isAlive(pid))
  box.write('shell', '')
  await resolve('claude', { CLAUDE_KEY: 'k' })
  t.equal(
    readFileSync(join(box.home, 'shell'), 'utf8'),
    '',
    'the shell is not run again for the same profile',
  )
})

for (const [what, line] of [
  ['exits', 'exit 3'],
  ['replaces the shell', 'exec sleep 0'],
  ['has a syntax error', 'if then ((('],
  ['reads standard input', 'read answer; export ANSWER="$answer"; exit'],
] as const)
  t.test(`a profile that ${what}`, async (t) => {
    const box = createTestBox(t)
    box.profile(line)
    box.program('claude', 'echo 1.0', '.local/bin')
    const { resolve } = await box.detect()
    const { path } = await resolve('claude', { CLAUDE_KEY: 'k' })
    t.equal(path, join(box.home, '.local/bin/claude'))
  })

t.test('close() terminates a login shell that hangs', async (t) => {
  const box = createTestBox(t)
  box.profile('echo $$ >$HOME/shell', 'while :; do sleep 1; done')
  const { close } = await box.detect({ loginTimeoutMs: 1e6 })
  const file = join(box.home, 'shell')
  await waitUntil('the shell runs', () => existsSync(file) && readFileSync(file, 'utf8').endsWith('\n'))
  await close()
  t.notOk(isAlive(Number(readFileSync(file, 'utf8'))))
})
