// The flow control of attached clients: the free bytes, acknowledgements, and waiting for space.
import t from 'tap'
import { OutputWindow } from '../../../../agent/exec/attached/output-window.ts'
import { ATTACH_LIMITS } from '../../../../shared/attach-format.ts'

const { outputWindowBytes } = ATTACH_LIMITS

t.test('both streams share the window', async (t) => {
  const window = new OutputWindow({ stdout: 10, stderr: 0 })
  t.equal(window.freeBytes, outputWindowBytes)
  window.advance('stdout', 10 + 30)
  window.advance('stderr', 5)
  t.equal(window.freeBytes, outputWindowBytes - 35)
  t.ok(window.acknowledge({ stdout: 40, stderr: 0 }))
  t.equal(window.freeBytes, outputWindowBytes - 5)
  t.same(window.acknowledged, { stdout: 40, stderr: 0 })
})

t.test(
  'an acknowledgement of output that was not sent is refused, and a late one has no effect',
  async (t) => {
    const window = new OutputWindow({ stdout: 0, stderr: 0 })
    window.advance('stdout', 30)
    t.notOk(window.acknowledge({ stdout: 31, stderr: 0 }))
    t.notOk(window.acknowledge({ stdout: 30, stderr: 1 }))
    t.same(window.acknowledged, { stdout: 0, stderr: 0 })
    t.ok(window.acknowledge({ stdout: 30, stderr: 0 }))
    t.ok(window.acknowledge({ stdout: 20, stderr: 0 }))
    t.same(window.acknowledged, { stdout: 30, stderr: 0 })
  },
)

t.test('a position beyond the end of the log is moved to the end', async (t) => {
  const window = new OutputWindow({ stdout: 100, stderr: 7 })
  window.limitPosition('stdout', 60)
  window.limitPosition('stderr', 60)
  t.same(window.sent, { stdout: 60, stderr: 7 })
  t.equal(window.freeBytes, outputWindowBytes)
})

t.test('waits until the client acknowledges enough', async (t) => {
  const window = new OutputWindow({ stdout: 0, stderr: 0 })
  await window.waitForSpace()
  window.advance('stdout', outputWindowBytes + 10)
  let hasSpace = false
  const waited = window.waitForSpace().then(() => {
    hasSpace = true
  })
  window.acknowledge({ stdout: 10, stderr: 0 })
  await new Promise(setImmediate)
  t.notOk(hasSpace, 'the window is still full')
  window.acknowledge({ stdout: 11, stderr: 0 })
  await waited
})

t.test('close() ends the wait', async () => {
  const window = new OutputWindow({ stdout: 0, stderr: 0 })
  window.advance('stdout', outputWindowBytes)
  const waited = window.waitForSpace()
  window.close()
  await waited
  await window.waitForSpace()
})
