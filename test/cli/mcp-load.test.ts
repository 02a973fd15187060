// box mcp with many calls at once, and much output.
import t from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { waitUntil } from '../support/wait-until.ts'
import { connectMcp } from './mcp-client.ts'

// With the limits of an installation: four streams, and twenty requests a second.
const coordinator = await startCoordinatorWithBox(t, { env: {} })
const { url, key } = coordinator
const box = coordinator.box.hostname
const mcp = await connectMcp(t, { url, key })

t.test('100 calls at once', async (t) => {
  const calls = Array.from({ length: 100 }, (_, i) => mcp.call('run_command', { box, command: `echo ${i}` }))
  const results = await Promise.all(calls)
  t.same(
    results.map(({ data }) => data.stdout),
    Array.from({ length: 100 }, (_, i) => `${i}\n`),
  )
})

t.test('100 MB of output', async (t) => {
  const command = 'echo first; head -c 100000000 /dev/zero | tr "\\\\0" x | fold -w 99; echo; echo last'
  const first = await mcp.call('run_command', { box, command })
  const { processId } = first.data
  const data = await waitUntil('the command has exited', async () => {
    const answer = await mcp.call('read_output', { box, processId })
    t.ok(Buffer.byteLength(answer.text) <= 24 * 1024)
    return answer.data.status === 'exited' && answer.data
  })
  t.match(data.stdout, /x\nlast\n$/)
  t.ok(data.nextOffset.stdout > 101_000_000)
  t.ok(data.omitted[0].bytes > 100_000_000)
})
