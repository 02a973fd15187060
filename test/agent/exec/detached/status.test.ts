// The output tail in the status of a detached process: at most 1 MiB per stream, as whole characters.
import t from 'tap'
import { createAgent } from './support.ts'

const MiB = 1024 * 1024

t.test('returns the requested number of bytes, and whether output was truncated', async (t) => {
  const { start, getStatus, waitForExit } = await createAgent(t)
  const { processId } = await start(`printf 0123456789; head -c 20000 /dev/zero | tr '\\0' e >&2`)
  await waitForExit(processId)
  t.match(await getStatus(processId, 10), { stdout: '0123456789', stdoutTruncated: false })
  t.match(await getStatus(processId, 9), { stdout: '123456789', stdoutTruncated: true })
  t.match(await getStatus(processId, 0), { stdout: '', stdoutTruncated: true })
  const { stderr, stderrTruncated } = await getStatus(processId)
  t.ok(stderr === 'e'.repeat(16_384) && stderrTruncated, '16 KiB by default')
})

t.test('leaves out a split character and shows invalid bytes as U+FFFD', async (t) => {
  const { start, getStatus, waitForExit } = await createAgent(t)
  const { processId } = await start(`printf '€€end'; printf '\\377\\200a' >&2`)
  await waitForExit(processId)
  for (const tail of [3, 4, 5])
    t.match(await getStatus(processId, tail), { stdout: 'end', stdoutTruncated: true })
  t.match(await getStatus(processId, 6), { stdout: '€end' })
  t.match(await getStatus(processId, 2), { stderr: '\ufffda' })
})

t.test('returns at most 1 MiB per stream', async (t) => {
  const { request, start, getStatus, waitForExit } = await createAgent(t)
  const { processId } = await start(`head -c ${MiB + 1} /dev/zero; head -c ${MiB} /dev/zero >&2`)
  await waitForExit(processId)
  const both = await getStatus(processId, MiB)
  t.equal(both.stdout.length, MiB)
  t.equal(both.stderr.length, MiB)
  t.match(both, { stdoutTruncated: true, stderrTruncated: false })
  for (const tail of [`${MiB + 1}`, '-1', '1.5', 'x']) {
    const response = await request({ path: `/exec/${processId}?tail=${tail}` })
    t.match(
      JSON.parse(response.text),
      { ok: false, error: { code: 'invalid_request', message: /^tail must be / } },
      tail,
    )
  }
})

t.test('discarded output counts as truncated', async (t) => {
  const { start, getStatus, waitForExit } = await createAgent(t, { maxLogBytes: 65_536 })
  const { processId } = await start('seq 100000')
  await waitForExit(processId)
  const { stdout, stdoutTruncated } = await getStatus(processId, MiB)
  t.ok(stdoutTruncated)
  t.ok(stdout.length <= 65_536 && stdout.endsWith('99999\n100000\n'))
})
