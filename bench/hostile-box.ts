// Child process of hostile.ts: the agent of one box. Arguments: the attack, or `correct`; the coordinator's URL, the id of
// the box and its token. Sends the parent a message when it has connected for the first time.
import { once } from 'node:events'
import { DIAL_BACK_HEADER } from '../shared/protocol.ts'
import { encodeFrame } from '../shared/stream-frames.ts'
import {
  connectHostileAgent,
  FLOODS,
  flood,
  type HostileRequest,
  isReportRequest,
} from '../test/support/hostile-agent.ts'
import { openStreamSocket } from '../test/support/hostile-responses.ts'
import { startTestAgent } from '../test/support/tunnel.ts'
import { CORRECT, createLargeList, PROCESS_ID } from './hostile.ts'

// The parent process has exited.
process.once('disconnect', () => process.exit(0))

const [attack = '', url = '', boxId = '', token = ''] = process.argv.slice(2)
const box = { boxId, token }

const HEARTBEAT_LINE = `${JSON.stringify({
  type: 'heartbeat',
  at: 1,
  vitals: { cpu_pct: 0, mem_pct: 0, disk_pct: 0, idle_for_sec: 0, listeners_count: 0, agent_version: '' },
})}\n`

const LINES = HEARTBEAT_LINE.repeat(500)

/** Frames with one byte of output each, as fast as the coordinator reads them. */
async function sendTinyFrames(id: string): Promise<void> {
  const ws = openStreamSocket(url, box, id)
  await once(ws, 'open')
  ws.send(encodeFrame({ event: 'attached', processId: PROCESS_ID, stdoutOffset: 0, stderrOffset: 0 }))
  for (let offset = 1; ws.readyState === ws.OPEN; offset++) {
    const bytes = Buffer.from('x')
    ws.send(encodeFrame({ event: 'stdout', stdoutOffset: offset, stderrOffset: 0, bytes }))
    while (ws.readyState === ws.OPEN && ws.bufferedAmount > 100_000) await new Promise(setImmediate)
    if (offset % 1000 === 0) await new Promise(setImmediate)
  }
}

/** More than a flood. */
const TINY_CHUNKS = 100_000

const largeList = createLargeList()
const millionsOfValues = `{"ok":true,"type":"exec.list","processes":[${'0,'.repeat(5 * 1024 * 1024)}0]}`

function respond(request: HostileRequest): void {
  const dialBackId = request.headers[DIAL_BACK_HEADER]
  if (isReportRequest(request)) {
    if (attack === 'tiny report lines') request.respond(200, LINES)
  } else if (dialBackId !== undefined) {
    request.respond(200)
    void sendTinyFrames(dialBackId).catch(() => undefined)
  } else if (attack === 'chunks of one byte') {
    request.send({ type: 'response', status: 200, size: TINY_CHUNKS })
    for (let i = 0; i < TINY_CHUNKS; i++) request.send({ type: 'chunk' }, 'x')
  } else request.respond(200, attack === 'responses of 12 MiB' ? largeList : millionsOfValues)
}

async function attackOnce(): Promise<void> {
  const ws = await connectHostileAgent(url, box, respond)
  process.send?.('connected')
  if (ws.readyState !== ws.OPEN) return
  const sendFlood = FLOODS[attack]
  if (sendFlood) await flood(ws, sendFlood)
  else await once(ws, 'close')
}

if (attack === CORRECT) {
  await startTestAgent(box, url, (router) =>
    router.add('GET', '/exec', () => ({ ok: true, type: 'exec.list', processes: [] })),
  )
  process.send?.('connected')
} else {
  // The coordinator refuses an attempt: the attack continues with the next one.
  for (;;) await attackOnce().catch(() => undefined)
}
