// The box command with a real coordinator and box: a followed command survives every cut, and is in the history.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { type BoxOptions, runBoxForBytes } from '../cli/run-box.ts'
import { agentPid } from '../support/agent-pid.ts'
import {
  EXIT_CODE,
  expectedOutput,
  NOISE_BYTES,
  STDOUT_A_BLOCK,
  writerCommand,
} from '../support/chaos/writer.ts'
import { coordinatorProcess, eventually } from '../support/coordinator-process.ts'
import { randomBuffer, seeded } from '../support/random.ts'
import { startTunnelProxy } from '../support/tunnel-proxy.ts'

t.setTimeout(180_000)

const MEBIBYTES = 40
/** Of them, not written before the last cut. */
const HELD = 4
const OWN_WORDS =
  /box: (no connection to the process\..*?Ctrl-C\.|connected again; it goes on where it was\.)\n/g
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

t.test('exec -d, logs -f under cuts, ps, kill, history, output', async (t) => {
  const target = { port: 0 }
  const clients = await startTunnelProxy(() => target.port)
  const agents = await startTunnelProxy(() => target.port)
  const coordinator = await coordinatorProcess(t, {
    BOXWOOD_PUBLIC_URL: clients.url,
    BOXWOOD_AGENT_URL: agents.url,
    BOXWOOD_LOG: 'silent',
  })
  t.teardown(() => Promise.all([clients.close(), agents.close()]))
  const aim = () => {
    target.port = Number(new URL(coordinator.url).port)
  }
  aim()
  const { id, hostname: name } = await coordinator.firstBox()
  const key = readFileSync(join(coordinator.data, 'owner.key'), 'utf8').trim()
  const bytes = (args: string[], options: BoxOptions = {}) =>
    runBoxForBytes(clients.url, args, { env: { BOXWOOD_API_KEY: key }, ...options })
  const box = async (...args: string[]) => {
    const { code, stdout, stderr } = await bytes(args)
    return { code, stdout: stdout.toString(), stderr: stderr.toString() }
  }

  const here = t.testdir({})
  const noise = randomBuffer(NOISE_BYTES, seeded(1))
  writeFileSync(join(here, 'noise'), noise)
  t.match(await box('cp', join(here, 'noise'), `${name}:`), { code: 0, stderr: '' })
  const started = await box('exec', '-d', name, '--', writerCommand(MEBIBYTES, HELD, 0.1))
  t.match(started, { code: 0, stderr: '' })
  const processId = started.stdout.trim()
  const expected = expectedOutput(MEBIBYTES, noise)

  await t.test('followed under cuts of everything, byte for byte, to its own exit code', async (t) => {
    let arrived = 0
    const news = (what: string) => {
      // On a slow machine the command is where it waits before the cuts are done.
      const enough = Math.min(arrived + STDOUT_A_BLOCK, (MEBIBYTES - HELD) * STDOUT_A_BLOCK)
      return eventually(`output after ${what}`, async () => arrived >= enough)
    }
    async function cutAll(): Promise<void> {
      await news('the start')
      for (let round = 0; round < 2; round++) {
        clients.reset()
        await news('a cut of the client')
        agents.reset()
        await news('a cut of the tunnel')
        const pid = agentPid(id)
        if (pid !== undefined) process.kill(pid, 'SIGKILL')
        await news('the end of the agent')
        await coordinator.end('SIGKILL')
        await coordinator.start()
        aim()
        await news('the end of the coordinator')
      }
      await eventually('it is told to finish', async () => {
        const answer = await coordinator.exec(name, 'touch finish').catch(() => undefined)
        return answer?.exitCode === 0
      })
    }
    let cuts: Promise<void> = Promise.resolve()
    const seen = await bytes(['logs', '-f', name, processId], {
      meanwhile(child) {
        child.stdout?.on('data', (chunk: Buffer) => {
          arrived += chunk.length
        })
        cuts = cutAll()
        cuts.catch(() => child.kill())
      },
    })
    await cuts
    t.equal(seen.stdout.length, MEBIBYTES * STDOUT_A_BLOCK)
    t.equal(sha256(seen.stdout), expected.stdout)
    const own = seen.stderr.toString('latin1').replace(OWN_WORDS, '')
    t.equal(sha256(Buffer.from(own, 'latin1')), expected.stderr)
    t.equal(seen.code, EXIT_CODE)

    const again = await bytes(['logs', '--tail', '100', name, processId])
    t.ok(again.stdout.equals(seen.stdout.subarray(-100)), 'its tail, without -f')
    t.equal(again.code, 0)

    await eventually('its record is complete', async () => {
      const { commands } = JSON.parse((await box('history', name, '--mode', 'detached', '--json')).stdout)
      return commands[0]?.status === 'exited' && commands[0]
    })
    const kept = await bytes(['output', name, processId])
    t.equal(kept.code, 0)
    t.ok(kept.stdout.length > 0 && seen.stdout.subarray(-kept.stdout.length).equals(kept.stdout))
    t.match(kept.stderr.toString(), /^box: \d+ bytes of stdout before this are missing/)
  })

  t.match((await box('ps', name)).stdout, new RegExp(`^${processId} .*exited ${EXIT_CODE}`, 'm'))
  t.match(
    (await box('history', name)).stdout,
    new RegExp(`^${processId} .*detached +cli .*exited ${EXIT_CODE}`, 'm'),
  )

  const other = (await box('exec', '-d', name, '--', 'echo ready; sleep 1000')).stdout.trim()
  t.match(await box('logs', name, other), { code: 0 }, 'what there is of one that goes on')
  t.match(await box('kill', name, other), { code: 0, stderr: `${other}: ended by TERM\n` })
  t.match(await box('kill', name, other), { code: 0, stderr: `${other}: had ended already\n` })
  t.match(await box('logs', '-f', name, other), { code: 143, stdout: 'ready\n' })
  t.match(await box('history', name, '--delete', other), { code: 0 })
  t.match(await box('output', name, other), { code: 5, stderr: /no record/ })
})
