// box mcp with 1 GB of output: the memory of its process is bounded, and the sizes of the answers are exact.
import { readFileSync } from 'node:fs'
import t from 'tap'
import { startCoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../support/wait-until.ts'
import { connectMcp, type ToolResult } from './mcp-client.ts'

const LINE = '0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrs\n'
const END = 'last\n'
const SIZE = 1_000_000_000
const TOTAL = SIZE + END.length
const ANSWER_BYTES = 24 * 1024
/** Node and the modules have about 110 MiB. */
const MAX_MIB = 300

const coordinator = await startCoordinatorWithBox(t)
const { url, key } = coordinator
const box = coordinator.box.hostname
const mcp = await connectMcp(t, { url, key }, { args: ['--max-wait', '5'] })

/** The highest resident memory of the process so far. */
function readPeakMib(): number {
  const status = readFileSync(`/proc/${mcp.transport.pid}/status`, 'utf8')
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

/** The text after the line about the bytes that are not shown. */
const getLastPart = (text: string): string =>
  text.replace(/^[\s\S]*bytes are not shown, from offset \d+ on\]\n/, '')

const assertSize = ({ text, data }: ToolResult) =>
  t.ok(Math.max(Buffer.byteLength(text), Buffer.byteLength(JSON.stringify(data))) <= ANSWER_BYTES)

const command = `yes '${LINE.trim()}' | head -c ${SIZE}; echo ${END.trim()}`

t.test('1 GB of output', async (t) => {
  await mcp.call('list_boxes')
  const before = readPeakMib()
  const first = await mcp.call('run_command', { box, command })
  assertSize(first)
  const { processId } = first.data
  const answer = await waitUntil(
    'the command has exited',
    async () => {
      const result = await mcp.call('read_output', { box, processId })
      assertSize(result)
      return result.data.status === 'exited' && !result.data.more && result
    },
    LONG_DEADLINE_MS,
  )

  const { data, text } = answer
  t.match(data, { status: 'exited', exitCode: 0, nextOffset: { stdout: TOTAL, stderr: 0 } })
  t.ok(data.stdout.endsWith(END))
  const [{ offset, bytes }] = data.omitted
  t.equal(offset + bytes + getLastPart(data.stdout).length, TOTAL, 'the sizes are exact')
  t.match(text, `${bytes} bytes of stdout are not shown`)

  // The box keeps the last 64 MiB.
  const page = await mcp.call('read_output', { box, processId, offset: { stdout: 0, stderr: 0 } })
  const [missing] = page.data.omitted
  t.ok(missing.bytes > SIZE / 2)
  t.equal(missing.offset + missing.bytes + page.data.stdout.length, page.data.nextOffset.stdout)
  const tail = await mcp.call('read_output', {
    box,
    processId,
    offset: { stdout: TOTAL - END.length - LINE.length * 10, stderr: 0 },
  })
  t.match(tail.data, { more: false, omitted: [], nextOffset: { stdout: TOTAL } })
  t.equal(tail.data.stdout.length, END.length + LINE.length * 10)

  const peak = readPeakMib()
  t.comment(`${Math.round(before)} MiB before, at most ${Math.round(peak)} MiB`)
  t.ok(peak < MAX_MIB, `${Math.round(peak)} MiB`)
})
