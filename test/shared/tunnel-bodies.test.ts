// Large bodies between two ends of a tunnel: windows, memory and interleaving.
import t from 'tap'
import { BodyReceiver, BodySender } from '../../shared/tunnel-bodies.ts'
import { agentMessageSchema, parseMessage, type WindowMessage } from '../../shared/tunnel-messages.ts'

const MiB = 1024 * 1024

/** A sender whose messages arrive when `deliver` is called, one at a time. */
function connect() {
  const windows: WindowMessage[] = []
  const queue: { message: Buffer<ArrayBuffer>; onSent: () => void }[] = []
  const receiver = new BodyReceiver((message) => {
    windows.push(message)
    sender.grant(message)
  })
  const sender = new BodySender((message, onSent) => queue.push({ message: Buffer.from(message), onSent }))
  const order: number[] = []
  const deliver = (): boolean => {
    const next = queue.shift()
    if (next === undefined) return false
    const { head, body } = parseMessage(agentMessageSchema, next.message)
    order.push('id' in head ? head.id : 0)
    if (head.type === 'chunk') receiver.receive(head.id, body)
    next.onSent()
    return true
  }
  return { receiver, sender, windows, queue, order, deliver }
}

const fill = (size: number) => Buffer.from(Array.from({ length: size }, (_, index) => index % 251))

t.test('a body arrives unchanged, within its window', (t) => {
  const { receiver, sender, windows, deliver } = connect()
  const bytes = fill(3 * MiB + 7)
  let received: Buffer | null = null
  let isDone = false
  sender.start(1, bytes, () => {
    isDone = true
  })
  receiver.expect(1, bytes.length, (body) => {
    received = body
  })
  let count = 0
  while (deliver()) {
    count += 1
    const granted = windows.reduce((sum, { bytes }) => sum + bytes, 0)
    t.ok(granted - Math.min(bytes.length, count * 65_536) <= MiB, 'at most 1 MiB is granted and not received')
  }
  t.equal(count, Math.ceil(bytes.length / 65_536))
  t.ok(received !== null && bytes.equals(received))
  t.ok(isDone)
  t.equal(receiver.has(1), false)
  t.end()
})

t.test('bodies are sent in turn', (t) => {
  const { receiver, sender, order, deliver } = connect()
  for (const id of [1, 2, 3]) {
    sender.start(id, Buffer.alloc(MiB), () => undefined)
    receiver.expect(id, MiB, () => undefined)
  }
  while (deliver());
  t.same(order.slice(0, 6), [1, 2, 3, 1, 2, 3])
  t.equal(order.length, 48)
  t.end()
})

t.test('bodies above 64 MiB together wait, in their order', (t) => {
  const windows: number[] = []
  const receiver = new BodyReceiver(({ id }) => void windows.push(id))
  for (const id of [1, 2, 3, 4]) receiver.expect(id, 30 * MiB, () => undefined)
  t.same(windows, [1, 2])
  receiver.discard(1)
  t.same(windows, [1, 2, 3], 'a discarded body occupies no memory')
  t.equal(receiver.remove(2), true)
  t.same(windows, [1, 2, 3, 4])
  t.equal(receiver.remove(2), false)
  t.end()
})

t.test('a discarded body gets no further window, and ends with what was granted', (t) => {
  const { receiver, sender, windows, deliver } = connect()
  let ended: unknown
  sender.start(1, Buffer.alloc(MiB), () => undefined)
  receiver.expect(1, MiB, (body) => {
    ended = body
  })
  deliver()
  receiver.discard(1)
  while (deliver());
  t.equal(ended, null, 'everything had been granted')
  sender.start(2, Buffer.alloc(3 * MiB), () => undefined)
  receiver.expect(2, 3 * MiB, () => t.fail('it is not complete'))
  deliver()
  receiver.discard(2)
  const count = windows.length
  while (deliver());
  t.equal(windows.length, count)
  t.equal(sender.stop(2), true, 'the sender still has the rest')
  t.equal(receiver.remove(2), true)
  t.end()
})

t.test('a stopped body sends no more', (t) => {
  const { receiver, sender, queue, deliver } = connect()
  let doneCount = 0
  sender.start(1, Buffer.alloc(MiB), () => {
    doneCount += 1
  })
  receiver.expect(1, MiB, () => t.fail('it is not complete'))
  deliver()
  t.equal(sender.stop(1), true)
  while (deliver());
  t.equal(queue.length, 0)
  t.equal(sender.stop(1), false)
  sender.grant({ type: 'window', id: 1, bytes: 1 })
  sender.close()
  sender.start(2, Buffer.alloc(1), () => {
    doneCount += 1
  })
  t.equal(doneCount, 2, 'after the close, nothing is sent')
  t.end()
})

t.test('bytes and windows that do not fit are refused', (t) => {
  const { receiver, sender } = connect()
  receiver.expect(1, 100, () => undefined)
  receiver.refuse(2)
  for (const [name, id, size] of [
    ['an unknown body', 9, 1],
    ['no bytes', 1, 0],
    ['more than the body', 1, 101],
    ['a refused body', 2, 1],
  ] as const)
    t.throws(() => receiver.receive(id, Buffer.alloc(size)), { message: /not requested/ }, name)
  sender.start(1, Buffer.alloc(100), () => undefined)
  t.throws(() => sender.grant({ type: 'window', id: 1, bytes: 101 }), { message: /beyond a body/ })
  t.end()
})
