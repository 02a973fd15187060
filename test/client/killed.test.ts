// The output of a command is whole when the coordinator is killed in the middle of it, and a box that vanishes is an error.
import { createHash } from 'node:crypto'
import t from 'tap'
import { Boxwood } from '../../client/exports.ts'
import { boxNode } from '../support/box-node.ts'
import { startProxiedCoordinator } from '../support/proxied-coordinator.ts'

const SIZE = 100 * 1024 * 1024
/** Prints SIZE bytes that do not repeat soon, slowly enough for an outage: the box keeps only the end of the output. */
const PRINT = `
  const { createHash } = require("node:crypto")
  let [left, seed] = [${SIZE}, "0"]
  const timer = setInterval(() => {
    for (let blocks = 0; blocks < 8 && left > 0; blocks += 1, left -= 65_536) {
      seed = createHash("sha256").update(seed).digest("hex")
      process.stdout.write(seed.repeat(1024))
    }
    if (left === 0) clearInterval(timer)
  }, 40)`

function hashExpected(): string {
  const hash = createHash('sha256')
  for (let [left, seed] = [SIZE, '0']; left > 0; left -= 65_536) {
    seed = createHash('sha256').update(seed).digest('hex')
    hash.update(seed.repeat(1024))
  }
  return hash.digest('hex')
}

const { clientProxy, agentProxy, box: first, key, restart } = await startProxiedCoordinator(t)
const boxwood = new Boxwood({ url: clientProxy.url, apiKey: key })

t.test(
  'the coordinator is killed three times in the middle of 100 MiB of output, and both connections are cut',
  async (t) => {
    const box = await boxwood.boxes.get(first.hostname)
    const process = await box.start(boxNode(PRINT))
    const hash = createHash('sha256')
    let [received, kills] = [0, 0]
    const output = process.output()
    for (;;) {
      const next = await output.next()
      if (next.done) {
        t.match(next.value, { status: 'exited', exitCode: 0, stdoutOffset: SIZE })
        break
      }
      const { stream, bytes, offset, missing } = next.value
      if (stream !== 'stdout' || offset !== received || missing !== 0)
        t.fail(`${stream} at ${offset} instead of ${received}, ${missing} bytes are missing`)
      hash.update(bytes)
      received += bytes.length
      if (received > (kills + 1) * (SIZE / 4) && kills < 3) {
        kills += 1
        await restart('SIGKILL')
        agentProxy.reset()
      }
    }
    t.equal(kills, 3)
    t.equal(hash.digest('hex'), hashExpected())
  },
)

t.test('a command of a box that is deleted meanwhile ends with an error', async (t) => {
  const box = await boxwood.boxes.create({ name: 'gone' })
  const process = await box.start('exec sleep 600')
  const waiting = process.wait()
  waiting.catch(() => undefined)
  await box.delete()
  await t.rejects(waiting, { name: 'NotFoundError' })
})

t.test('a connection that is reset while a command runs', async (t) => {
  const box = await boxwood.boxes.get(first.hostname)
  const running = box.exec('echo begin; sleep 2; echo end', { onStdout: () => clientProxy.reset() })
  t.match(await running, { exitCode: 0, stdout: 'begin\nend\n' })
})
