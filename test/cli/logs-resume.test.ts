// box logs -f over connections that fail: each byte once, and the exit code of the command.
import { once } from 'node:events'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { addFakeProcesses, type Fault } from './fake-processes.ts'
import { createRandom, type Random } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const processes = addFakeProcesses(fake)
const followArgs = (id: string) => ['logs', '-f', 'fig', id]

/** On a slow machine any outage may last long enough for these messages. */
const OUTAGE_MESSAGES =
  /box: (disconnected from the process\..*?Ctrl-C to stop\.|reconnected; the output continues where it stopped\.)\n/g

type FaultKind = 'disconnect' | 'end' | 'reconnect' | 'error'

/** Some connections repeat bytes that were read before, some end before the first output. */
const pickStreamFault = (random: Random): Fault => ({
  kind: random.pick<FaultKind>(['disconnect', 'disconnect', 'end', 'reconnect', 'error']),
  afterBytes: random.below(random.pick([400, 300_000, 300_000, 300_000])),
  rewindBytes: random.pick([0, 0, 1, 40_000]),
})

const pickConnectFault = (random: Random): Fault =>
  random.pick<Fault>([
    { kind: 'reset' },
    { kind: 'bad_gateway' },
    { kind: 'error_response', code: 'rate_limited', headers: { 'retry-after': '0' } },
    { kind: 'error_response', code: 'box_unreachable' },
    { kind: 'error_response', code: 'control_plane_unavailable' },
  ])

for (const seed of [1, 2, 3]) {
  t.test(`prints every byte once despite random connection failures, seed ${seed}`, async (t) => {
    const random = createRandom(seed)
    const stdout = random.bytes(1_000_000 + random.below(500_000))
    const stderr = random.bytes(random.below(600_000))
    const exitCode = random.below(120)
    const faults = Array.from({ length: 14 }, (_, index) =>
      index % 3 === 2 ? pickConnectFault(random) : pickStreamFault(random),
    )
    const process = processes.add({
      stdout,
      stderr,
      exit: { status: 'exited', exitCode, signal: null },
      getFault: (connection) => faults[connection] ?? null,
    })
    const result = await runBoxForBytes(fake.url, followArgs(process.id))
    t.ok(result.stdout.equals(stdout), `${stdout.length} bytes of stdout`)
    const passedOn = Buffer.from(result.stderr.toString('latin1').replace(OUTAGE_MESSAGES, ''), 'latin1')
    t.ok(passedOn.equals(stderr), `${stderr.length} bytes of stderr`)
    t.equal(result.code, exitCode)
    t.ok(process.connections > 5, `over ${process.connections} connections`)
  })
}

t.test('reports a long outage of the coordinator, and when it is over', async (t) => {
  const stdout = createRandom(4).bytes(300_000)
  let startOutage: (() => Promise<void>) | null = null
  const process = processes.add({
    stdout,
    getFault(connection) {
      if (connection > 0) return null
      void startOutage?.()
      return { kind: 'disconnect', afterBytes: 100_000 }
    },
  })
  let outage: Promise<void> | undefined
  const result = await runBoxForBytes(fake.url, followArgs(process.id), {
    onSpawn(child) {
      const reported = new Promise<void>((resolve) => {
        child.stderr?.on('data', (chunk: Buffer) => {
          if (chunk.includes('disconnected')) resolve()
        })
      })
      startOutage = async () => {
        // The first bytes must arrive before the coordinator stops.
        await once(child.stdout ?? child, 'data')
        outage = fake.stopDuring(() => reported)
        await outage
      }
    },
  })
  await outage
  t.equal(result.code, 0)
  t.ok(result.stdout.equals(stdout))
  t.match(
    result.stderr.toString(),
    /^box: disconnected from the process\. .*Ctrl-C to stop\.\nbox: reconnected; the output continues where it stopped\.\n$/,
  )
})

t.test('retries while the box is suspended, and stops when the process does not exist', async (t) => {
  const faults: Fault[] = [
    { kind: 'disconnect', afterBytes: 300 },
    { kind: 'error_response', code: 'box_not_running' },
    { kind: 'error_response', code: 'not_found' },
  ]
  const process = processes.add({
    stdout: Buffer.alloc(900_000),
    getFault: (connection) => faults[connection] ?? null,
  })
  t.match(await runBox(fake.url, followArgs(process.id)), {
    code: 125,
    stderr: /box: No such process on fig: 'p_.*'\. Run `box ps fig` to list processes\.\n$/,
  })
  t.equal(process.connections, 3)
})

t.test('stops when the key is rejected', async (t) => {
  const faults: Fault[] = [
    { kind: 'disconnect', afterBytes: 300 },
    { kind: 'error_response', code: 'unauthorized' },
  ]
  const process = processes.add({
    stdout: Buffer.alloc(900_000),
    getFault: (connection) => faults[connection] ?? null,
  })
  t.match(await runBox(fake.url, followArgs(process.id)), {
    code: 125,
    stderr: /was rejected.*\(unauthorized\)/,
  })
})

t.test('waits for the Retry-After of a 429', async (t) => {
  let rateLimitedUntil = 0
  const process = processes.add({
    stdout: Buffer.from('done\n'),
    getFault() {
      const now = performance.now()
      rateLimitedUntil ||= now + 990
      if (now >= rateLimitedUntil) return null
      return { kind: 'error_response', code: 'rate_limited', headers: { 'retry-after': '1' } }
    },
  })
  t.match(await runBox(fake.url, followArgs(process.id)), { code: 0, stdout: 'done\n' })
  t.equal(process.connections, 2, 'no attempt before the time is over')
})

t.test('Ctrl-C during an outage does not state that the process is running', async (t) => {
  const { id } = processes.add({
    stdout: Buffer.from('ready\n'),
    exit: null,
    getFault: (connection) =>
      connection === 0 ? { kind: 'disconnect', afterBytes: 150 } : { kind: 'reset' },
  })
  const result = await runBox(fake.url, followArgs(id), {
    onSpawn: (child) =>
      child.stderr?.on('data', (chunk: Buffer) => {
        if (chunk.includes('disconnected')) child.kill('SIGINT')
      }),
  })
  t.match(result, {
    code: 130,
    stderr: new RegExp(`\\nbox: stopped\\. Reattach with: box logs -f fig ${id}\\n$`),
  })
})
