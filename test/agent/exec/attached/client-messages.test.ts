// The messages of an attached client: early ones, invalid ones, and those after the client is closing.
import t from 'tap'
import { ClientMessages } from '../../../../agent/exec/attached/client-messages.ts'
import { OutputWindow } from '../../../../agent/exec/attached/output-window.ts'
import type { StdinWriter } from '../../../../agent/exec/attached/stdin-writer.ts'
import type { ServerMessage } from '../../../../shared/api/attach.ts'
import { ATTACH_LIMITS } from '../../../../shared/attach-format.ts'

function createMessages({ stdin = null }: { stdin?: StdinWriter | null } = {}) {
  const calls: string[] = []
  const closed: (ServerMessage | undefined)[] = []
  const window = new OutputWindow({ stdout: 0, stderr: 0 })
  window.advance('stdout', 10)
  const messages = new ClientMessages({
    attachment: {
      stdin,
      acknowledge: ({ stdout, stderr }) => void calls.push(`ack ${stdout} ${stderr}`),
      detach: () => void calls.push('detach'),
      finish: () => void calls.push('finish'),
    },
    socket: {
      async send({ type }) {
        calls.push(`send ${type}`)
      },
      close: (message) => void closed.push(message),
    },
    window,
  })
  return { messages, calls, closed, window }
}

const ack = (stdoutOffset: number) => ({ type: 'ack', stdoutOffset, stderrOffset: 0 }) as const

t.test('messages before start() are handled then, in order', async (t) => {
  const { messages, calls, closed } = createMessages()
  for (const offset of [3, 7]) messages.receive(ack(offset))
  t.same(calls, [])
  messages.start()
  messages.receive(ack(10))
  t.same(calls, ['ack 3 0', 'ack 7 0', 'ack 10 0'])
  t.same(closed, [])
})

t.test('an acknowledgement of output that was not sent closes the connection', async (t) => {
  const { messages, calls, closed, window } = createMessages()
  messages.start()
  messages.receive(ack(11))
  t.match(closed, [{ type: 'error', code: 'invalid_request' }])
  messages.receive(ack(10))
  messages.receive({ type: 'detach' })
  t.same(calls, [], 'further messages are ignored')
  t.same(window.acknowledged, { stdout: 0, stderr: 0 })
})

t.test('a client cannot have received an exit that was not sent', async (t) => {
  const { messages, calls, closed } = createMessages()
  messages.start()
  messages.receive({ type: 'exitReceived' })
  t.same([calls, closed], [[], []])
  messages.expectExitReceived()
  messages.receive({ type: 'exitReceived' })
  t.same([calls, closed], [['finish'], [undefined]])
})

t.test('stdin is refused without a stdin, and beyond the window', async (t) => {
  const bytes = Buffer.from('x')
  const without = createMessages()
  without.messages.start()
  without.messages.receive({ type: 'stdinBytes', bytes })
  t.match(without.closed, [{ message: /without stdin/ }])

  let queuedBytes = ATTACH_LIMITS.stdinWindowBytes + ATTACH_LIMITS.chunkBytes - 1
  const stdin: StdinWriter = {
    acceptedOffset: () => 0,
    queuedBytes: () => queuedBytes,
    write: ({ length }) => {
      queuedBytes += length
    },
    end: () => undefined,
    reset: () => undefined,
    isClosed: false,
    isEnded: false,
    close: () => undefined,
  }
  const { messages, closed } = createMessages({ stdin })
  messages.start()
  messages.receive({ type: 'stdinBytes', bytes })
  t.same(closed, [], 'the last byte of the window')
  messages.receive({ type: 'stdinBytes', bytes })
  t.match(closed, [{ code: 'invalid_request', message: /ahead/ }])
})

t.test('nothing is handled after close()', async (t) => {
  const { messages, calls } = createMessages()
  messages.receive(ack(3))
  messages.close()
  messages.start()
  messages.receive({ type: 'detach' })
  t.same(calls, [])
})
