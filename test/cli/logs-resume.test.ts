// box logs -f over connections that fail: each byte once, and the exit code of the command.
import { once } from 'node:events'
import t from 'tap'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { startCliCoordinator } from './coordinator.ts'
import { createProcessStarter, streamOf } from './detached-processes.ts'
import { createRandom, type Random } from './random.ts'
import { runBox, runBoxForBytes } from './run-box.ts'
import { rewind, type StreamFault, setStreamFaults } from './stream-faults.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const { edge } = coordinator
const { start, run, writeFile } = createProcessStarter(coordinator)
const followArgs = (id: string) => ['logs', '-f', 'fig', id]
const setFaults = (id: string, faults: (StreamFault | null)[]) =>
  setStreamFaults(coordinator, streamOf(id), faults)

/** On a slow machine any outage may last long enough for these messages. */
const OUTAGE_MESSAGES =
  /box: (disconnected from the process\..*?Ctrl-C to stop\.|reconnected; the output continues where it stopped\.)\n/g

/** Some connections repeat bytes that were read before, some end before the first output. */
const pickStreamFault = (random: Random): StreamFault => ({
  kind: random.pick(['disconnect', 'disconnect', 'end', 'reconnect', 'error']),
  afterBytes: random.below(random.pick([400, 300_000, 300_000, 300_000])),
  seek: rewind(random.pick([0, 0, 1, 40_000])),
})

const pickConnectFault = (random: Random): StreamFault =>
  random.pick<StreamFault>([
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
    const id = await run(`cat ${writeFile(stdout)}; cat ${writeFile(stderr)} >&2; exit ${exitCode}`)
    const { countConnections } = setFaults(id, faults)
    const result = await runBoxForBytes(coordinator, followArgs(id))
    t.ok(result.stdout.equals(stdout), `${stdout.length} bytes of stdout`)
    const passedOn = Buffer.from(result.stderr.toString('latin1').replace(OUTAGE_MESSAGES, ''), 'latin1')
    t.ok(passedOn.equals(stderr), `${stderr.length} bytes of stderr`)
    t.equal(result.code, exitCode)
    t.ok(countConnections() > 5, `over ${countConnections()} connections`)
  })
}

t.test('reports a long outage of the coordinator, and when it is over', async (t) => {
  const id = await start('echo first; until test -e go; do sleep 0.01; done; echo last')
  let outage: Promise<void> | undefined
  const result = await runBox(coordinator, followArgs(id), {
    onSpawn(child) {
      const reported = new Promise<void>((resolve) => {
        child.stderr?.on('data', (chunk: Buffer) => {
          if (chunk.includes('disconnected')) resolve()
        })
      })
      const cause = async () => {
        await once(child.stdout ?? child, 'data')
        await coordinator.stopDuring(async () => {
          await edge('fig', 'POST', '/exec', { command: 'touch go' })
          await reported
        })
      }
      outage = cause()
    },
  })
  await outage
  t.match(result, {
    code: 0,
    stdout: 'first\nlast\n',
    stderr:
      /^box: disconnected from the process\. .*Ctrl-C to stop\.\nbox: reconnected; the output continues where it stopped\.\n$/,
  })
})

t.test('retries while the box is suspended, and stops when the process does not exist', async (t) => {
  const id = await run('head -c 900000 /dev/zero')
  const { countConnections } = setFaults(id, [
    { kind: 'disconnect', afterBytes: 300 },
    { kind: 'error_response', code: 'box_not_running' },
    { kind: 'error_response', code: 'not_found' },
  ])
  t.match(await runBox(coordinator, followArgs(id)), {
    code: 125,
    stderr: /box: No such process on fig: 'p_.*'\. Run `box ps fig` to list processes\.\n$/,
  })
  t.equal(countConnections(), 3)
})

t.test('stops when the key is rejected', async (t) => {
  const id = await run('head -c 900000 /dev/zero')
  setFaults(id, [
    { kind: 'disconnect', afterBytes: 300 },
    { kind: 'error_response', code: 'unauthorized' },
  ])
  t.match(await runBox(coordinator, followArgs(id)), {
    code: 125,
    stderr: /was rejected.*\(unauthorized\)/,
  })
})

t.test('waits for the Retry-After of a 429', async (t) => {
  const id = await run('echo done')
  let rateLimitedUntil = 0
  const { countConnections } = setFaults(id, [])
  for (let connection = 0; connection < 3; connection++)
    coordinator.failNext(streamOf(id), async (response, _, forward) => {
      const now = performance.now()
      rateLimitedUntil ||= now + 990
      if (now >= rateLimitedUntil) {
        const upstream = await forward()
        return upstream.pipe(response.writeHead(upstream.statusCode ?? 0, upstream.headers))
      }
      response
        .writeHead(429, { 'content-type': 'application/json', 'retry-after': '1' })
        .end(JSON.stringify(edgeErrorBody(new ApiError('rate_limited'))))
    })
  t.match(await runBox(coordinator, followArgs(id)), { code: 0, stdout: 'done\n' })
  t.equal(countConnections(), 2, 'no attempt before the time is over')
})

t.test('Ctrl-C during an outage does not state that the process is running', async (t) => {
  const id = await start('echo ready; sleep 1000')
  setFaults(id, [{ kind: 'disconnect', afterEvents: 2 }, ...Array(100).fill({ kind: 'reset' })])
  const result = await runBox(coordinator, followArgs(id), {
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
