// The frame codec: round trips, and rejection of everything that is not exactly one valid frame.
import t from 'tap'
import { STREAM_CHUNK_BYTES } from '../../shared/api/processes.ts'
import { decodeFrame, encodeFrame, MAX_FRAME_BYTES, type StreamFrame } from '../../shared/stream-frames.ts'

const at = (stdoutOffset: number, stderrOffset = 0) => ({ stdoutOffset, stderrOffset })
const LARGEST = 10 ** 15 - 1

t.test('every frame survives encoding and decoding', async (t) => {
  const frames: StreamFrame[] = [
    { event: 'attached', ...at(3, 4), processId: 'p_0123456789abcdef01234567' },
    { event: 'heartbeat', ...at(LARGEST, LARGEST) },
    { event: 'reconnect', ...at(0) },
    { event: 'exit', ...at(5), status: 'killed', exitCode: null, signal: 'TERM', timedOut: true },
    { event: 'exit', ...at(5), status: 'exited', exitCode: 255, signal: null, timedOut: false },
    { event: 'error', ...at(5), code: 'not_found', message: 'deleted\nearlier' },
    ...[
      Buffer.from('\n{"event":"exit"}\n'),
      Buffer.from([0, 0xff, 10, 13]),
      Buffer.alloc(STREAM_CHUNK_BYTES),
    ].map((bytes) => ({ event: 'stdout' as const, ...at(bytes.length, 9), bytes })),
    { event: 'stderr', ...at(0, LARGEST), bytes: Buffer.from('x') },
    { event: 'attached', ...at(0), processId: 'p_0123456789abcdef01234567', hasTimes: true },
    { event: 'stdout', ...at(1), at: 2 ** 50, bytes: Buffer.from('x') },
    { event: 'stdout', ...at(1), at: null, bytes: Buffer.from('x') },
  ]
  for (const frame of frames) {
    const message = encodeFrame(frame)
    t.ok(message.length <= MAX_FRAME_BYTES)
    t.same(decodeFrame(message), frame, frame.event)
  }
})

t.test('an exit frame of an earlier agent has not timed out', async (t) => {
  const exit = { event: 'exit', ...at(1), status: 'killed', exitCode: null, signal: 'TERM' }
  t.same(decodeFrame(Buffer.from(`${JSON.stringify(exit)}\n`)), { ...exit, timedOut: false })
})

t.test('rejects invalid frames', async (t) => {
  const header = (fields: object) => `${JSON.stringify(fields)}\n`
  const heartbeat = { event: 'heartbeat', ...at(1) }
  for (const [name, message] of Object.entries({
    'an empty message': '',
    'a header without a newline': JSON.stringify(heartbeat),
    'a header that is not JSON': '{"event":\n',
    'a header that is not an object': '[]\n',
    'an unknown event': header({ ...heartbeat, event: 'message' }),
    'a missing offset': header({ event: 'heartbeat', stdoutOffset: 1 }),
    'a negative offset': header({ ...heartbeat, stderrOffset: -1 }),
    'a fractional offset': header({ ...heartbeat, stderrOffset: 1.5 }),
    'an offset beyond 15 digits': header({ ...heartbeat, stdoutOffset: LARGEST + 1 }),
    'an offset as text': header({ ...heartbeat, stdoutOffset: '1' }),
    'an exit without a status': header({ event: 'exit', ...at(1), exitCode: 0, signal: null }),
    'an exit code that no process has': header({
      event: 'exit',
      ...at(1),
      status: 'exited',
      exitCode: 256,
      signal: null,
    }),
    'a control frame with output': `${header(heartbeat)}x`,
    'a time that is not a valid date': `${header({ event: 'stdout', ...at(1), at: 9e15 })}x`,
    'a time as text': `${header({ event: 'stdout', ...at(1), at: '2026' })}x`,
    'an output frame without output': header({ event: 'stdout', ...at(1) }),
    'more output than its offset allows': `${header({ event: 'stdout', ...at(2, 9) })}abc`,
    'more output than a chunk': `${header({ event: 'stdout', ...at(10 ** 9) })}${'x'.repeat(STREAM_CHUNK_BYTES + 1)}`,
    'a header of more than 8 KiB': header({ event: 'error', ...at(1), code: 'x', message: 'x'.repeat(9000) }),
  }))
    t.throws(() => decodeFrame(Buffer.from(message)), { name: 'InvalidFrameError' }, name)
})

t.test('unknown header fields are dropped', async (t) => {
  const message = Buffer.from(`${JSON.stringify({ event: 'heartbeat', ...at(1), extra: true })}\n`)
  t.same(decodeFrame(message), { event: 'heartbeat', ...at(1) })
})
