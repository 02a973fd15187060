// box logs -f over connections that break in every way there is: each byte once, and the command's own exit code.
import { once } from 'node:events'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { type Fault, fakeProcesses } from './fake-processes.ts'
import { createRandom, type Random } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'

t.setTimeout(180_000)
const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const processes = fakeProcesses(fake)
const follow = (id: string) => ['logs', '-f', 'fig', id]

/** What it says of a break that lasts is right wherever it comes; on a busy machine each may last. */
const OWN_WORDS =
  /box: (no connection to the process\..*?Ctrl-C\.|connected again; it goes on where it was\.)\n/g

/** Some go back behind what was seen, some get no further than their first event. */
const anyBreak = (random: Random): Fault => ({
  kind: random.pick<Kind>(['cut', 'cut', 'end', 'reconnect', 'error']),
  afterBytes: random.below(random.pick([400, 300_000, 300_000, 300_000])),
  backBytes: random.pick([0, 0, 1, 40_000]),
})
type Kind = 'cut' | 'end' | 'reconnect' | 'error'

const anyRefusal = (random: Random): Fault =>
  random.pick<Fault>([
    { kind: 'reset' },
    { kind: 'proxy' },
    { kind: 'refusal', code: 'rate_limited', headers: { 'retry-after': '0' } },
    { kind: 'refusal', code: 'box_unreachable' },
    { kind: 'refusal', code: 'control_plane_unavailable' },
  ])

for (const seed of [1, 2, 3]) {
  t.test(`random bytes over random breaks, seed ${seed}`, async (t) => {
    const random = createRandom(seed)
    const stdout = random.bytes(1_000_000 + random.below(500_000))
    const stderr = random.bytes(random.below(600_000))
    const exitCode = random.below(120)
    const faults = Array.from({ length: 14 }, (_, index) =>
      index % 3 === 2 ? anyRefusal(random) : anyBreak(random),
    )
    const process = processes.add({
      stdout,
      stderr,
      end: { status: 'exited', exitCode, signal: null },
      fault: (connection) => faults[connection] ?? null,
    })
    const seen = await runBoxForBytes(fake.url, follow(process.id))
    t.ok(seen.stdout.equals(stdout), `${stdout.length} bytes of stdout, byte for byte`)
    const own = Buffer.from(seen.stderr.toString('latin1').replace(OWN_WORDS, ''), 'latin1')
    t.ok(own.equals(stderr), `${stderr.length} bytes of stderr`)
    t.equal(seen.code, exitCode)
    t.ok(process.connections > 5, `over ${process.connections} connections`)
  })
}

t.test('a coordinator that is away: said when it lasts, and when it is back', async (t) => {
  const stdout = createRandom(4).bytes(300_000)
  let away: (() => Promise<void>) | null = null
  const process = processes.add({
    stdout,
    fault(connection) {
      if (connection > 0) return null
      void away?.()
      return { kind: 'cut', afterBytes: 100_000 }
    },
  })
  let isBack: Promise<void> | undefined
  const seen = await runBoxForBytes(fake.url, follow(process.id), {
    meanwhile(child) {
      const said = new Promise<void>((resolve) => {
        child.stderr?.on('data', (chunk: Buffer) => {
          if (chunk.includes('no connection')) resolve()
        })
      })
      away = async () => {
        // What is cut goes out first.
        await once(child.stdout ?? child, 'data')
        isBack = fake.down(() => said)
        await isBack
      }
    },
  })
  await isBack
  t.equal(seen.code, 0)
  t.ok(seen.stdout.equals(stdout))
  t.match(
    seen.stderr.toString(),
    /^box: no connection to the process\. .*Ctrl-C\.\nbox: connected again; it goes on where it was\.\n$/,
  )
})

t.test('a box that is suspended in the middle is waited for; a process that is gone is not', async (t) => {
  const kinds: Fault[] = [
    { kind: 'cut', afterBytes: 300 },
    { kind: 'refusal', code: 'box_not_running' },
    { kind: 'refusal', code: 'not_found' },
  ]
  const process = processes.add({
    stdout: Buffer.alloc(900_000),
    fault: (connection) => kinds[connection] ?? null,
  })
  const seen = await runBox(fake.url, follow(process.id))
  t.match(seen, { code: 125, stderr: /There is no process p_.* on fig\. `box ps fig`/ })
  t.equal(process.connections, 3)
})

t.test('a key that is no longer accepted ends it', async (t) => {
  const kinds: Fault[] = [
    { kind: 'cut', afterBytes: 300 },
    { kind: 'refusal', code: 'unauthorized' },
  ]
  const process = processes.add({
    stdout: Buffer.alloc(900_000),
    fault: (connection) => kinds[connection] ?? null,
  })
  t.match(await runBox(fake.url, follow(process.id)), {
    code: 125,
    stderr: /is not accepted.*\(unauthorized\)/,
  })
})

t.test('the wait that a 429 asks for is kept', async (t) => {
  let until = 0
  const process = processes.add({
    stdout: Buffer.from('done\n'),
    fault() {
      const now = performance.now()
      until ||= now + 990
      return now < until ? { kind: 'refusal', code: 'rate_limited', headers: { 'retry-after': '1' } } : null
    },
  })
  t.match(await runBox(fake.url, follow(process.id)), { code: 0, stdout: 'done\n' })
  t.equal(process.connections, 2, 'it does not ask again before')
})
