// Signing in to a coding agent, and out, is seen at once, whatever happens to the directories.
import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { PROVIDERS } from '../../../../shared/field-values.ts'
import { DEADLINE_MS } from '../../../support/wait-until.ts'
import { addPrograms, createTestBox } from './support.ts'

t.test('a prompt without a credential is refused with what to do', async (t) => {
  const box = createTestBox(t)
  addPrograms(box)
  const { fail, resolve } = await box.detect()
  t.same(await fail('claude'), {
    code: 'provider_not_signed_in',
    message: 'Claude Code is not signed in on the box. Sign in to claude.',
  })
  t.same(await fail('claude', {}, 'deepseek/x'), {
    code: 'provider_not_signed_in',
    message: 'Claude Code has no credential for deepseek on the box. Sign in to claude for deepseek/x.',
  })
  t.notMatch(await resolve('claude', { CLAUDE_KEY: 'placeholder' }), { env: { CREDENTIAL: String } })
  const { env } = await resolve('claude', { CLAUDE_KEY: 'placeholder', OTHER_KEY: 'other' })
  t.match(env, { CREDENTIAL: 'other' }, 'a credential under the name that the coding agent reads')
  box.signIn('claude')
  await resolve('claude')
})

t.test('signing in and out changes the readiness', async (t) => {
  const box = createTestBox(t)
  addPrograms(box)
  const { readiness, events, waitForReadiness, waitUntilWatching } = await box.detect()
  await waitUntilWatching()
  const first = readiness()
  t.same(first, Object.fromEntries(PROVIDERS.map((name) => [name, 'not_signed_in'])))
  const seen: unknown[] = []
  events.on('change', () => seen.push(readiness().opencode))
  box.signIn('opencode')
  await waitForReadiness('opencode', 'ready')
  t.same(seen, ['ready'])
  t.same(readiness(), { ...first, opencode: 'ready' })
  t.equal(first.opencode, 'not_signed_in', 'an earlier object is not changed')
  for (const name of PROVIDERS) {
    box.signIn(name)
    await waitForReadiness(name, 'ready')
    writeFileSync(box.credentialFile(name), '')
    await waitForReadiness(name, 'not_signed_in')
    box.signIn(name)
    await waitForReadiness(name, 'ready')
    unlinkSync(box.credentialFile(name))
    await waitForReadiness(name, 'not_signed_in')
  }
})

t.test('directories of credentials are removed, replaced and created again', async (t) => {
  const box = createTestBox(t)
  addPrograms(box)
  box.signIn('opencode')
  const { waitForReadiness } = await box.detect()
  await waitForReadiness('opencode', 'ready')
  for (const dir of ['.local', '.local/share/opencode']) {
    rmSync(join(box.home, dir), { recursive: true })
    await waitForReadiness('opencode', 'not_signed_in')
    box.signIn('opencode')
    await waitForReadiness('opencode', 'ready')
  }
  renameSync(join(box.home, '.local'), join(box.home, 'moved'))
  await waitForReadiness('opencode', 'not_signed_in')
  symlinkSync('moved', join(box.home, '.local'))
  await waitForReadiness('opencode', 'ready')
})

t.test('other entries at the paths do not disturb', async (t) => {
  const box = createTestBox(t)
  addPrograms(box)
  const { fail, waitForReadiness, waitUntilWatching } = await box.detect()
  await waitUntilWatching()
  const file = box.credentialFile('codex')
  mkdirSync(file, { recursive: true })
  t.equal((await fail('codex')).code, 'provider_not_signed_in')
  rmSync(file, { recursive: true })
  execFileSync('mkfifo', [file])
  t.equal((await fail('codex')).code, 'provider_not_signed_in', 'a FIFO does not block')
  rmSync(file)
  writeFileSync(file, Buffer.alloc(5 * 1024 * 1024, 'x'))
  t.equal((await fail('codex')).code, 'provider_not_signed_in', 'a large file is not read')
  rmSync(dirname(file), { recursive: true })
  writeFileSync(dirname(file), 'a file instead of the directory')
  t.equal((await fail('codex')).code, 'provider_not_signed_in')
  rmSync(dirname(file))
  box.signIn('codex')
  await waitForReadiness('codex', 'ready')
})

t.test('the variables of the box count for the readiness', async (t) => {
  const box = createTestBox(t)
  addPrograms(box)
  const { setBoxVariables, resolve, readiness, waitForReadiness, waitUntilWatching } = await box.detect()
  await waitUntilWatching()
  await waitForReadiness('claude', 'not_signed_in')
  setBoxVariables({ CLAUDE_KEY: 'k', CODEX_KEY: 'k' })
  await waitForReadiness('claude', 'ready')
  await waitForReadiness('codex', 'ready')
  setBoxVariables({ CODEX_KEY: 'k' })
  await waitForReadiness('claude', 'not_signed_in')
  // A queued prompt has the variables of an earlier time.
  await resolve('claude', { CLAUDE_KEY: 'k' })
  box.signIn('pi')
  await waitForReadiness('pi', 'ready')
  t.match(readiness(), { claude: 'not_signed_in', codex: 'ready' })
})

t.test('the start of the agent runs no program of a coding agent', async (t) => {
  const box = createTestBox(t)
  addPrograms(box)
  box.signIn('claude')
  const { waitForReadiness } = await box.detect()
  await waitForReadiness('claude', 'ready')
  t.same(PROVIDERS.map(box.countStarts), [0, 0, 0, 0])
})

t.test('a detector that is not closed does not keep the process alive', async (t) => {
  const box = createTestBox(t)
  box.signIn('claude')
  box.program('claude', 'echo 1.0')
  const source = join(import.meta.dirname, '../../../../agent/prompts')
  const script = `
    import pino from 'pino'
    import { setTimeout as sleep } from 'node:timers/promises'
    const { createProviderDetector } = await import(${JSON.stringify(`${source}/detection/provider-detector.ts`)})
    const { providers } = await import(${JSON.stringify(`${source}/providers/providers.ts`)})
    const home = ${JSON.stringify(box.home)}
    const detector = await createProviderDetector({ home, baseEnv: { HOME: home, PATH: '/usr/bin:/bin', CLAUDE_CODE_OAUTH_TOKEN: 't' },
      providers, clock: { now: Date.now }, log: pino({ level: 'silent' }), startDelayMs: 0 })
    while (detector.readiness().claude !== 'ready') await sleep(10)
    console.log('ready')`
  const args = ['--input-type=module', '--eval', script]
  const cwd = join(import.meta.dirname, '../../../..')
  t.equal(execFileSync(process.execPath, args, { cwd, encoding: 'utf8', timeout: DEADLINE_MS }), 'ready\n')
})
