// The end of what it printed, as text: whole characters, and the word when there was more.
import t from 'tap'
import { agent } from './support.ts'

const MiB = 1024 * 1024

t.test('the last bytes, and whether there were more', async (t) => {
  const { start, status, ended } = await agent(t)
  const { processId } = await start(`printf 0123456789; head -c 20000 /dev/zero | tr '\\0' e >&2`)
  await ended(processId)
  t.match(await status(processId, 10), { stdout: '0123456789', stdoutTruncated: false })
  t.match(await status(processId, 9), { stdout: '123456789', stdoutTruncated: true })
  t.match(await status(processId, 0), { stdout: '', stdoutTruncated: true })
  const { stderr, stderrTruncated } = await status(processId)
  t.ok(stderr === 'e'.repeat(16_384) && stderrTruncated, '16 KiB when nothing is said')
})

t.test('a character that the cut halves is left out, and bytes that are none are shown', async (t) => {
  const { start, status, ended } = await agent(t)
  const { processId } = await start(`printf '€€end'; printf '\\377\\200a' >&2`)
  await ended(processId)
  for (const tail of [3, 4, 5])
    t.match(await status(processId, tail), { stdout: 'end', stdoutTruncated: true })
  t.match(await status(processId, 6), { stdout: '€end' })
  t.match(await status(processId, 2), { stderr: '\ufffda' })
})

t.test('a mebibyte of each at most', async (t) => {
  const { app, start, status, ended } = await agent(t)
  const { processId } = await start(`head -c ${MiB + 1} /dev/zero; head -c ${MiB} /dev/zero >&2`)
  await ended(processId)
  const both = await status(processId, MiB)
  t.equal(both.stdout.length, MiB)
  t.equal(both.stderr.length, MiB)
  t.match(both, { stdoutTruncated: true, stderrTruncated: false })
  for (const tail of [`${MiB + 1}`, '-1', '1.5', 'x']) {
    const answer = await app.inject(`/exec/${processId}?tail=${tail}`)
    t.match(answer.json(), { ok: false, error: { code: 'invalid_request', message: /^tail must be / } }, tail)
  }
})

t.test('what was given up counts as more', async (t) => {
  const { start, status, ended } = await agent(t, { logBytes: 65_536 })
  const { processId } = await start('seq 100000')
  await ended(processId)
  const { stdout, stdoutTruncated } = await status(processId, MiB)
  t.ok(stdoutTruncated)
  t.ok(stdout.length <= 65_536 && stdout.endsWith('99999\n100000\n'))
})
