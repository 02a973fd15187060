// A suspended box that was frozen: programs, timers, clocks, connections, terminals and commands continue after the wake,
// also when the coordinator was killed meanwhile.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { probeCgroups } from '../../coordinator/providers/local/cgroups.ts'
import { connectAttachClient } from '../support/attach-client.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { openResumingTerminal } from '../support/resuming-terminal.ts'
import { describeLines } from '../support/terminal-screen.ts'
import { waitUntil } from '../support/wait-until.ts'

const { canFreeze } = await probeCgroups()

/** Longer than the timers of the programs below, and than the tick of the agent's running clock. */
const FROZEN_MS = 3_000
const TIMER_MS = 2_000

/** Counts the messages of each connection, in memory, and replies with the count. */
const SERVER = `
const server = require('node:net').createServer((socket) => {
  let count = 0
  socket.on('data', () => socket.write(String(++count) + '\\n'))
})
server.listen(0, '127.0.0.1', () => require('node:fs').writeFileSync('port', String(server.address().port)))
`
/** Writes what it observes to the file \`state\`. */
const CLIENT = `
const fs = require('node:fs'), crypto = require('node:crypto')
const memory = crypto.randomBytes(4_000_000)
const state = { pid: process.pid, intervals: 0, timeouts: 0, lateTimers: 0, replies: 0, closes: 0 }
const socket = require('node:net').connect(Number(fs.readFileSync('port', 'utf8')), '127.0.0.1')
socket.on('data', (text) => { state.replies = Number(String(text).trim().split('\\n').at(-1)) })
socket.on('close', () => { state.closes++ }).on('error', () => undefined)
setInterval(() => {
  state.intervals++
  socket.write('x')
  Object.assign(state, { monotonicMs: performance.now(), wallMs: Date.now() })
  state.memory = crypto.hash('sha256', memory)
  fs.writeFileSync('state.new', JSON.stringify(state))
  fs.renameSync('state.new', 'state')
}, 50)
const next = () => { state.timeouts++; setTimeout(next, 20) }
next()
process.on('SIGUSR2', () => setTimeout(() => state.lateTimers++, ${TIMER_MS}))
`
const COUNT_IN_SHELL = 'i=0; while :; do i=$((i+1)); echo $i >shell.new; mv shell.new shell; sleep 0.05; done'

type ProgramState = Record<
  'pid' | 'intervals' | 'timeouts' | 'lateTimers' | 'replies' | 'closes' | 'monotonicMs' | 'wallMs',
  number
> & { memory: string }

t.test(
  'everything in a box continues after a freeze',
  { skip: !canFreeze && 'no cgroup freezer' },
  async (t) => {
    const coordinator = await startCoordinatorProcess(t)
    const { send, sendJson, waitForState, authHeaders } = coordinator
    const { id, hostname } = await coordinator.waitForFirstBox()
    const exec = (command: string, options = {}) => coordinator.exec(hostname, command, options)
    const readFile = async (name: string): Promise<string> => (await exec(`cat ${name}`)).stdout
    const readState = async () => JSON.parse(await readFile('state')) as ProgramState
    const write = async (path: string, text: string) => {
      const response = await send('PUT', `/v1/box/${hostname}/upload?path=${path}`, text)
      response.resume()
      t.equal(response.statusCode, 200)
    }

    await exec('mkdir -p ~/bin; ln -sf "$(command -v node || echo /run/boxwood/bin/node)" ~/bin/node')
    await write('server.js', SERVER)
    await write('client.js', CLIENT)
    await exec('setsid ~/bin/node server.js >/dev/null 2>&1 &')
    await waitUntil('the server listens', async () => (await readFile('port')) !== '')
    await exec('setsid ~/bin/node client.js >/dev/null 2>&1 &')
    await exec(`setsid sh -c '${COUNT_IN_SHELL}' >/dev/null 2>&1 &`)
    await waitUntil('the programs run', async () => (await exec('cat state shell')).exitCode === 0)
    const started = await connectAttachClient(`${coordinator.url}/v1/box/${hostname}/terminal`, authHeaders())
    const session = (await started.waitFor('attached')).session ?? ''
    started.cut()
    const terminal = openResumingTerminal(
      () => `${coordinator.url}/v1/box/${hostname}`,
      authHeaders(),
      session,
    )
    t.teardown(() => terminal.close())
    terminal.type('remembered=$$; echo shell $remembered\n')
    const findLine = (pattern: RegExp) =>
      describeLines(terminal.terminal).flatMap((line) => pattern.exec(line)?.[1] ?? [])[0]
    const shellPid = await waitUntil('the shell runs', () => findLine(/^shell (\d+)/))

    for (const round of [1, 2]) {
      // Its time limit is shorter than the time for which the box is frozen.
      const { processId } = await exec('for i in 1 2 3 4 5 6 7 8; do sleep 0.1; done; echo complete', {
        detached: true,
        timeoutSeconds: FROZEN_MS / 1000,
      })
      const attached = await exec('while read -r line; do echo "got $line"; done; echo end', {
        attached: true,
        stdin: true,
      })
      const attachUrl = `/v1/box/${hostname}/exec/${attached.processId}/attach`
      const client = await connectAttachClient(coordinator.url + attachUrl, authHeaders())
      client.sendStdin('before\n')
      await waitUntil('the attached command runs', () => client.stdout() === 'got before\n')
      const before = await readState()
      const shellCount = Number(await readFile('shell'))
      await exec(`kill -USR2 ${before.pid}`)

      await sendJson('POST', `/api/v1/boxes/${id}/suspend`)
      t.match(await waitForState(id, 'suspended'), { suspendedAs: 'frozen' })
      const frozenAt = performance.now()
      await client.closed
      if (round === 2) {
        await coordinator.kill('SIGKILL')
        await coordinator.start()
        t.match(await waitForState(id, 'suspended'), { suspendedAs: 'frozen' }, 'a new coordinator')
      }
      await sleep(FROZEN_MS)
      const frozenMs = performance.now() - frozenAt
      await sendJson('POST', `/api/v1/boxes/${id}/wake`)
      await waitForState(id, 'running')
      const { pausesSurvived } = await sendJson('GET', `/api/v1/boxes/${id}`)
      t.equal(pausesSurvived, round)

      const after = await waitUntil(`the programs continue (round ${round})`, async () => {
        const state = await readState()
        const isContinued =
          state.intervals > before.intervals + 5 &&
          state.timeouts > before.timeouts + 5 &&
          state.replies > before.replies + 5 &&
          state.lateTimers === round
        return isContinued && state
      })
      t.equal(after.pid, before.pid)
      t.equal(after.memory, before.memory)
      t.equal(after.closes, 0, 'the connection between two processes of the box is open')
      t.ok(after.intervals - before.intervals < frozenMs / 50, 'missed intervals are not repeated')
      t.ok(
        after.monotonicMs - before.monotonicMs >= frozenMs,
        'the monotonic clock shows the time of the freeze',
      )
      t.ok(after.wallMs - before.wallMs >= frozenMs, 'the wall clock shows the time of the freeze')
      await waitUntil('the shell script continues', async () => Number(await readFile('shell')) > shellCount)
      const connect = `require('node:net').connect(${await readFile('port')}, '127.0.0.1').end('x').pipe(process.stdout)`
      t.match(await exec(`~/bin/node -e "${connect}"`), { stdout: '1\n' }, 'a new connection to the server')

      const result = await waitUntil('the detached command exits', async () => {
        const status = await sendJson('GET', `/v1/box/${hostname}/exec/${processId}`)
        return status.running === false && status
      })
      t.match(result, { exitCode: 0, timedOut: false }, 'its time limit does not count the freeze')
      const next = await connectAttachClient(
        `${coordinator.url}${attachUrl}?stdoutOffset=${client.position.stdoutOffset}`,
        authHeaders(),
      )
      next.sendStdin('after\n')
      next.send({ type: 'stdinEnd' })
      t.match(await next.waitFor('exit'), { exitCode: 0 })
      t.equal(next.stdout(), 'got after\nend\n', 'the attached command continues with its next client')
      next.send({ type: 'exitReceived' })
      await next.closed
      terminal.type(`echo round${round} $remembered\n`)
      t.equal(
        await waitUntil('the terminal continues', () => findLine(new RegExp(`^round${round} (\\d+)`))),
        shellPid,
        'the same shell',
      )
    }
  },
)
