// box exec over connections that fail: each byte once in both directions, and the exit code. Also hostile servers.
import { once } from 'node:events'
import t from 'tap'
import type { WebSocket } from 'ws'
import type { ServerMessage } from '../../shared/api/attach.ts'
import { ATTACH_LIMITS, encodeChunk } from '../../shared/attach-format.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { refuseUpgrade, type UpgradeFault } from '../support/fault-proxy.ts'
import { type AttachFault, setAttachFaults } from './attach-faults.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createRandom, type Random } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const setFaults = (faults: (AttachFault | null)[]) => setAttachFaults(coordinator, faults)

/** On a slow machine any outage may last long enough for these messages. */
const OUTAGE_MESSAGES =
  /box: (disconnected from the command\..*?Ctrl-C to stop\.|reconnected; the output continues where it stopped\.)\n/g

const pickCut = (random: Random): AttachFault => ({
  kind: random.pick(['cut_sent', 'cut_received']),
  afterBytes: random.below(random.pick([300, 2000, 400_000, 400_000])),
})

const pickRefusal = (random: Random): AttachFault =>
  random.pick<AttachFault>([
    { kind: 'reset' },
    { kind: 'bad_gateway' },
    { kind: 'error_response', code: 'rate_limited', headers: { 'retry-after': '0' } },
    { kind: 'error_response', code: 'box_unreachable' },
    { kind: 'error_response', code: 'control_plane_unavailable' },
    { kind: 'message', message: { type: 'reconnect' } },
    {
      kind: 'message',
      message: { type: 'error', code: 'box_unreachable', message: 'The connection was lost.' },
    },
  ])

for (const seed of [2, 3]) {
  t.test(`passes on every byte once despite random connection failures, seed ${seed}`, async (t) => {
    const random = createRandom(seed)
    const stdin = random.bytes(2_000_000 + random.below(500_000))
    const { countConnections } = setFaults(
      Array.from({ length: 10 }, (_, index) => (index % 3 === 2 ? pickRefusal : pickCut)(random)),
    )
    const result = await runBoxForBytes(
      coordinator,
      ['exec', 'fig', '--', 'cat >copy; cat copy; cat copy >&2; exit 6'],
      { stdin },
    )
    t.ok(result.stdout.equals(stdin), `${result.stdout.length} of ${stdin.length} bytes of stdout`)
    const stderr = Buffer.from(result.stderr.toString('latin1').replace(OUTAGE_MESSAGES, ''), 'latin1')
    t.ok(stderr.equals(stdin), `${stderr.length} bytes of stderr`)
    t.equal(result.code, 6)
    t.ok(countConnections() > 4, `over ${countConnections()} connections`)
  })
}

t.test('reports a long outage of the coordinator, and when it is over', async (t) => {
  let outage: Promise<void> | undefined
  setFaults([])
  const result = await runBox(coordinator, ['exec', 'fig', '--', 'cat; echo end'], {
    stdin: null,
    onSpawn(child) {
      const reported = new Promise<void>((resolve) => {
        child.stderr?.on('data', (chunk: Buffer) => {
          if (chunk.includes('disconnected')) resolve()
        })
      })
      child.stdin?.write('first\n')
      const cause = async () => {
        await once(child.stdout ?? child, 'data')
        await coordinator.stopDuring(async () => {
          child.stdin?.end('second\n')
          await reported
        })
      }
      outage = cause()
    },
  })
  await outage
  t.match(result, {
    code: 0,
    stdout: 'first\nsecond\nend\n',
    stderr:
      /^box: disconnected from the command\. .*Ctrl-C to stop\.\nbox: reconnected; the output continues where it stopped\.\n$/,
  })
})

t.test('stops when a new connection cannot help', async (t) => {
  const lost: AttachFault = { kind: 'cut_sent', afterBytes: 400 }
  const expected = [
    ['not_found', /No such process on fig: 'p_.*'/],
    ['unauthorized', /was rejected.*\(unauthorized\)/],
    ['box_not_running', /Box fig is not running\./],
  ] as const
  for (const [code, stderr] of expected) {
    setFaults([lost, { kind: 'error_response', code }])
    const result = await runBox(coordinator, ['exec', 'fig', '--', 'yes'], {
      onSpawn: (child) => child.stdout?.resume(),
    })
    t.match(result, { code: 125, stderr }, code)
  }
  setFaults([
    {
      kind: 'message',
      message: { type: 'error', code: 'invalid_request', message: 'Another client attached.' },
    },
  ])
  t.match(await runBox(coordinator, ['exec', 'fig', '--', 'cat'], { stdin: null }), {
    code: 125,
    stderr: 'box: Another client attached. (invalid_request)\n',
  })
})

t.test('waits for the Retry-After of a 429', async (t) => {
  let rateLimitedUntil = 0
  const refuse: UpgradeFault = (client, open, ...rest) => {
    const now = performance.now()
    rateLimitedUntil ||= now + 990
    if (now >= rateLimitedUntil) return open()
    const error = new ApiError('rate_limited')
    return refuseUpgrade(error.status, edgeErrorBody(error), { 'retry-after': '1' })(client, open, ...rest)
  }
  const { countConnections } = setFaults([])
  for (let connection = 0; connection < 3; connection++)
    coordinator.failNextUpgrade('GET /v1/box/fig/exec/', refuse)
  t.match(await runBox(coordinator, ['exec', 'fig', '--', 'echo done']), { code: 0, stdout: 'done\n' })
  t.equal(countConnections(), 2, 'no attempt before the time is over')
})

const ATTACHED: ServerMessage = { type: 'attached', stdinOffset: 0, stdoutOffset: 0, stderrOffset: 0 }
const EXIT: ServerMessage = {
  type: 'exit',
  status: 'exited',
  exitCode: 0,
  signal: null,
  timedOut: false,
  stdoutOffset: 0,
  stderrOffset: 0,
}
const send = (ws: WebSocket, ...messages: unknown[]) => {
  for (const message of messages) ws.send(Buffer.isBuffer(message) ? message : JSON.stringify(message))
}

t.test('reports messages that violate the protocol', async (t) => {
  const chunk = encodeChunk('stdout', Buffer.alloc(ATTACH_LIMITS.chunkBytes))
  const chunks = ATTACH_LIMITS.outputWindowBytes / ATTACH_LIMITS.chunkBytes + 1
  const violations: [string, (ws: WebSocket) => void, RegExp][] = [
    ['output before attached', (ws) => send(ws, chunk), /a message before the message attached/],
    ['text that is not JSON', (ws) => ws.send('{'), /not a JSON object/],
    ['a message without a type', (ws) => ws.send('{}'), /without a type/],
    ['a negative offset', (ws) => send(ws, { ...ATTACHED, stdinOffset: -1 }), /without a valid stdinOffset/],
    [
      'stdin that was never sent',
      (ws) => send(ws, ATTACHED, { type: 'stdin', offset: 9 }),
      /offset of stdin/,
    ],
    ['an unknown channel', (ws) => send(ws, ATTACHED, Buffer.from([7, 1])), /unknown form/],
    ['an empty binary message', (ws) => send(ws, ATTACHED, Buffer.alloc(0)), /unknown form/],
    ['a message above the limit', (ws) => ws.send(Buffer.alloc(1 << 20)), /invalid WebSocket message/],
    ['text above the limit', (ws) => ws.send(' '.repeat(40_000)), /too large/],
    ['attached twice', (ws) => send(ws, ATTACHED, ATTACHED), /twice/],
    [
      'a screen',
      (ws) => send(ws, ATTACHED, { type: 'screen', bytes: 1, stdoutOffset: 0, stderrOffset: 0 }),
      /screen/,
    ],
    [
      'an exit that goes back',
      (ws) => send(ws, ATTACHED, encodeChunk('stdout', Buffer.from('a')), EXIT),
      /smaller than/,
    ],
    ['an invalid exit', (ws) => send(ws, ATTACHED, { ...EXIT, exitCode: 'no' }), /without a valid exitCode/],
  ]
  for (const [name, run, stderr] of violations) {
    setFaults([{ kind: 'script', run }])
    const result = await runBox(coordinator, ['exec', 'fig', '--', 'sleep 60'], { stdin: null })
    t.match(
      result,
      { code: 125, stderr: /^box: The coordinator sent .*Check that box and the coordinator/ },
      name,
    )
    t.match(result.stderr, stderr, name)
  }

  // stdout is not read, so the client acknowledges nothing.
  setFaults([
    { kind: 'script', run: (ws) => send(ws, ATTACHED, ...Array.from({ length: chunks }, () => chunk)) },
  ])
  const overflow = await runBox(coordinator, ['exec', 'fig', '--', 'sleep 60'], {
    stdin: null,
    ignoreStdout: true,
    onSpawn(child) {
      child.stdout?.pause()
      // The process exits when its output is written.
      child.stderr?.once('data', () => child.stdout?.resume())
    },
  })
  t.match(overflow, { code: 125, stderr: /sent more output than was acknowledged/ })
})

t.test('unknown messages are ignored, and discarded output is reported', async (t) => {
  const run = (ws: WebSocket) =>
    send(
      ws,
      ATTACHED,
      { type: 'future', field: 1 },
      encodeChunk('stdout', Buffer.from('one ')),
      { type: 'skipped', stdoutOffset: 10, stderrOffset: 0 },
      encodeChunk('stdout', Buffer.from('two\n')),
      { ...EXIT, exitCode: 8, stdoutOffset: 14 },
    )
  setFaults([{ kind: 'script', run }])
  t.match(await runBox(coordinator, ['exec', 'fig', '--', 'sleep 60']), {
    code: 8,
    stdout: 'one two\n',
    stderr: 'box: 6 bytes of stdout before this point are missing.\n',
  })
})
