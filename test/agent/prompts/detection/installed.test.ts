// A coding agent counts as installed when its program prints a version.
import { chmodSync, existsSync, renameSync, rmSync, symlinkSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { waitUntil } from '../../../support/wait-until.ts'
import { createTestBox } from './support.ts'

const SIGNED_IN = { CLAUDE_KEY: 'k' }

t.test('a program that is missing or not executable', async (t) => {
  const box = createTestBox(t)
  const { fail, resolve } = await box.detect()
  const { code, message } = await fail('claude', SIGNED_IN)
  t.equal(code, 'provider_not_installed')
  t.match(
    message,
    /^Claude Code is not installed .*Run `npm install -g @anthropic-ai\/claude-code` on the box\.$/,
  )
  t.match(await fail('codex'), { message: /`npm install -g @openai\/codex`/ })
  const file = box.program('claude', 'echo 1.0')
  chmodSync(file, 0o644)
  t.equal((await fail('claude', SIGNED_IN)).code, 'provider_not_installed')
  chmodSync(file, 0o755)
  t.match(await resolve('claude', SIGNED_IN), { path: file, version: '1.0' })
})

t.test('a stub that prints an error is not installed', async (t) => {
  const box = createTestBox(t)
  box.program('claude', 'echo "native binary 2.1.329 is missing" >&2; exit 1')
  box.program('codex', 'echo "Run the installer first"')
  const { fail, readiness, waitForReadiness } = await box.detect()
  await waitForReadiness('claude', 'not_signed_in')
  t.equal(readiness().codex, 'not_signed_in', 'a program on the PATH counts until a probe has failed')
  t.match(await fail('claude', SIGNED_IN), {
    code: 'provider_not_installed',
    message: /--version` failed: exit status 1: native binary 2\.1\.329 is missing\. Install it again/,
  })
  t.match(await fail('codex'), { message: /it printed: Run the installer first/ })
  await waitForReadiness('claude', 'not_installed')
  await waitForReadiness('codex', 'not_installed')
})

t.test('a version on stderr counts', async (t) => {
  const box = createTestBox(t)
  box.program('claude', 'echo 0.74.2 >&2')
  const { resolve } = await box.detect()
  t.equal((await resolve('claude', SIGNED_IN)).version, '0.74.2')
})

t.test('a program that hangs, and one that prints without end', async (t) => {
  const box = createTestBox(t)
  box.program('claude', 'sleep 1000')
  box.program('codex', 'exec yes')
  const { fail } = await box.detect({ versionTimeoutMs: 300 })
  t.match(await fail('claude', SIGNED_IN), { message: /it did not exit within 0\.3 s/ })
  t.match(await fail('codex'), { code: 'provider_not_installed' })
})

t.test('concurrent prompts share a probe, and later ones its result', async (t) => {
  const box = createTestBox(t)
  box.program('claude', `while ! [ -e '${box.home}/go' ]; do sleep 0.01; done; echo 1.0`)
  const { resolve } = await box.detect()
  const started = Array.from({ length: 5 }, () => resolve('claude', SIGNED_IN))
  await waitUntil('the program runs', () => box.countStarts('claude') > 0)
  box.write('go', '')
  t.same(new Set((await Promise.all(started)).map(({ version }) => version)), new Set(['1.0']))
  await resolve('claude', SIGNED_IN)
  t.equal(box.countStarts('claude'), 1)
})

t.test('an upgrade is noticed, also with the same size and mtime', async (t) => {
  const box = createTestBox(t)
  const file = box.program('claude', 'echo 1.0')
  const { resolve } = await box.detect()
  t.equal((await resolve('claude', SIGNED_IN)).version, '1.0')
  const upgraded = box.program('claude', 'echo 1.1', 'next')
  for (const path of [file, upgraded]) utimesSync(path, 499_162_500, 499_162_500)
  renameSync(upgraded, file)
  t.equal((await resolve('claude', SIGNED_IN)).version, '1.1')
  rmSync(file)
  symlinkSync(box.program('claude-1.2', 'echo 1.2', 'versions'), file)
  t.match(await resolve('claude', SIGNED_IN), { version: '1.2', path: file })
})

t.test('a failure is cached for 30 s, or until the file changes', async (t) => {
  const box = createTestBox(t)
  box.program('claude', `[ -e '${box.home}/node' ] || exit 127; echo 1.0`)
  let now = 0
  const { fail, resolve } = await box.detect({ clock: { now: () => now } })
  await fail('claude', SIGNED_IN)
  box.write('node', '')
  now += 20_000
  await fail('claude', SIGNED_IN)
  t.equal(box.countStarts('claude'), 1)
  now += 20_000
  t.equal((await resolve('claude', SIGNED_IN)).version, '1.0')
  box.program('claude', 'exit 1')
  await fail('claude', SIGNED_IN)
  box.program('claude', 'echo 1.3')
  t.equal((await resolve('claude', SIGNED_IN)).version, '1.3')
})

t.test('relative entries of the PATH are ignored', async (t) => {
  const box = createTestBox(t)
  box.program('claude', 'echo 1.0', 'relative')
  const { fail } = await box.detect()
  const PATH = `relative:.::${join(box.home, 'absent')}`
  t.equal((await fail('claude', { ...SIGNED_IN, PATH })).code, 'provider_not_installed')
  t.notOk(existsSync(join(box.home, 'claude.starts')))
})
